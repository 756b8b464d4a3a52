#include "allreduce/strategy/bucket_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace syncopate::allreduce {
namespace {

std::string mebibytes(std::size_t bytes) { return fmt::format("{:.4g} MiB", static_cast<double>(bytes) / (1 << 20)); }

}  // namespace

std::vector<BucketCandidate> bucket_candidates(const ParamLayout& layout) {
  std::vector<BucketCandidate> candidates;
  for (std::size_t bytes = 64 * 1024;; bytes *= 4) {
    std::vector<Range> buckets = buckets_in_backward_order(layout, bytes);
    const bool is_whole = layout.dense().size() * sizeof(float) <= bytes;  // tables have buckets of their own
    if (candidates.empty() || buckets != candidates.back().buckets) candidates.push_back({bytes, std::move(buckets)});
    if (is_whole) return candidates;
  }
}

BucketSearch::BucketSearch(std::size_t candidates) : times_(candidates) {
  assert(candidates >= 1 && candidates <= (kMostSteps - kSkipped) / 2);
  if (candidates == 1) return;
  const auto count = static_cast<int>(candidates);
  const int rounds_both_ways = (kMostSteps - kSkipped) / (2 * count);
  steps_ = kSkipped + count * std::min(kMostRounds, 2 * rounds_both_ways);
}

std::size_t BucketSearch::candidate() const {
  assert(!ended());
  if (step_ < kSkipped) return 0;
  const auto turn = static_cast<std::size_t>(step_ - kSkipped);
  const std::size_t place = turn % times_.size();
  const bool upwards = turn / times_.size() % 2 == 0;
  return upwards ? place : times_.size() - 1 - place;
}

void BucketSearch::step_took(Duration time) {
  if (step_ >= kSkipped) times_[candidate()].push_back(time);
  ++step_;
}

std::vector<Duration> BucketSearch::medians() const {
  assert(ended() && steps_ > 0);
  std::vector<Duration> medians;
  for (std::vector<Duration> times : times_) {
    std::ranges::sort(times);
    const std::size_t half = times.size() / 2;  // of an even number: one up the list, one down
    medians.push_back((times[half - 1] + times[half]) / 2);
  }
  return medians;
}

std::size_t fastest(std::span<const float> times) {
  return static_cast<std::size_t>(std::ranges::min_element(times) - times.begin());
}

std::string describe_search(std::span<const BucketCandidate> candidates, std::span<const float> times, int ranks) {
  std::string text = fmt::format("{}; a step took", mebibytes(candidates[fastest(times)].bytes));
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    text += fmt::format("{} {:.3f} ms with {}", i == 0 ? "" : ",", times[i] / static_cast<float>(ranks),
                        mebibytes(candidates[i].bytes));
  }
  return text;
}

}  // namespace syncopate::allreduce
