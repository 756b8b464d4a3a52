#include "prediction/advice/search.h"

#include <algorithm>
#include <utility>

#include "prediction/host_memory.h"

namespace syncopate::prediction {
namespace {

template <typename Found>
Found* of_same_kind(std::vector<Found>& all, const Way& way) {
  const auto found = std::ranges::find_if(all, [&](const Found& other) { return other.way.is_of_kind(way); });
  return found == all.end() ? nullptr : &*found;
}

void note_too_large(SearchResult& result, const Way& way, double bytes) {
  if (TooLarge* other = of_same_kind(result.too_large, way)) {
    if (bytes < other->bytes) *other = {way, bytes};
  } else {
    result.too_large.push_back({way, bytes});
  }
}

}  // namespace

Result<SearchResult> search(const AdvisedJob& job, const Network& network, const SearchSpace& space,
                            const std::vector<FormedWay>& others) {
  std::vector<FormedWay> formed;
  for (const Way& way : ways_in(space, network)) {
    SYNCOPATE_ASSIGN_OR_RETURN(const StepPrediction prediction, predict_way(job, network, way));
    formed.push_back({way, prediction, least_step(job, network, way),
                      worker_host_bytes(job.profile, network, way.plan, job.state_floats)});
  }
  formed.insert(formed.end(), others.begin(), others.end());
  SearchResult result;
  for (const auto& [way, prediction, least, bytes] : formed) {
    if (job.memory_bytes && bytes > *job.memory_bytes) {
      note_too_large(result, way, bytes);
      continue;
    }
    Candidate candidate{way, prediction, bytes, score(job, network, way, prediction.step),
                        score(job, network, way, least)};
    Candidate* const other = of_same_kind(result.best, way);
    if (other == nullptr) {
      result.best.push_back(candidate);
      continue;
    }
    if (candidate.score < other->score) std::swap(candidate, *other);
    result.others.push_back(candidate);
  }
  std::erase_if(result.too_large,
                [&](const TooLarge& large) { return of_same_kind(result.best, large.way) != nullptr; });
  std::ranges::stable_sort(result.best, {}, &Candidate::score);
  std::ranges::stable_sort(result.others, {}, &Candidate::score);
  return result;
}

}  // namespace syncopate::prediction
