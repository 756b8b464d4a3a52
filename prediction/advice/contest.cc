#include "prediction/advice/contest.h"

#include <cassert>
#include <limits>
#include <utility>

namespace syncopate::prediction {
namespace {

// A mode of which nothing fits into memory is behind any other.
double score_or_none(const Candidate* candidate) {
  return candidate != nullptr ? candidate->score : std::numeric_limits<double>::infinity();
}

// Returns `number` as often halved as it is even, or doubled up to `most`, in rising order; and 1 before and `most`
// behind them.
std::vector<int> doubled(int number, int most) {
  while (number % 2 == 0) number /= 2;
  std::vector<int> all = {1};
  for (; number <= most; number *= 2) {
    if (number > 1) all.push_back(number);
  }
  if (all.back() != most) all.push_back(most);
  return all;
}

}  // namespace

Contest::Contest(const AdvisedJob& job, const Network& network, SpaceOf space_of, const Errors& errors)
    : job_(job), network_(network), space_of_(std::move(space_of)), errors_(errors) {}

Scores Contest::scores(const Network& network, SearchSpace space) const {
  space.asynchronous = false;
  const Result<SearchResult> result = search(job_, network, space);
  assert(result.ok());
  return {score_or_none(result->allreduce()), score_or_none(result->servers())};
}

std::vector<Stretch> Contest::over_links(double low, double high) const {
  const auto at = [this](double rate) {
    Network other = network_;
    other.bytes_per_second = rate;
    return scores(other, space_of_(other.workers));
  };
  return stretches(at, low, high, errors_);
}

std::vector<Stretch> Contest::over_workers(int most) const {
  const auto at = [this](int workers) {
    Network other = network_;
    other.workers = workers;
    return scores(other, space_of_(workers));
  };
  return whole_stretches(at, doubled(network_.workers, most), errors_);
}

std::vector<Stretch> Contest::over_servers(int most) const {
  const auto at = [this](int servers) {
    SearchSpace space = space_of_(network_.workers);
    space.servers = {servers};
    space.colocated = false;
    return scores(network_, space);
  };
  return whole_stretches(at, doubled(1, most), errors_);
}

}  // namespace syncopate::prediction
