#include "allreduce/strategy/bucket_choice.h"

#include <fmt/format.h>

#include <algorithm>

namespace syncopate::allreduce {

void BucketChoice::cut(const ParamLayout& layout) {
  if (bytes_ > 0) {
    grains_ = buckets_in_backward_order(layout, bytes_);
    candidates_ = {{bytes_, grains_}};
  } else {
    grains_ = buckets_in_backward_order(layout, 0);  // one a tensor
    candidates_ = bucket_candidates(layout);
  }
}

std::vector<Range> BucketChoice::all_buckets() const {
  std::vector<Range> in_order;
  for (const BucketCandidate& candidate : candidates_) {
    in_order.insert(in_order.end(), candidate.buckets.begin(), candidate.buckets.end());
  }
  return in_order;
}

Status BucketChoice::prepare(std::uint64_t found) {
  SYNCOPATE_ASSIGN_OR_RETURN(times_, collective_.allocate(candidates_.size()));
  const auto known = std::ranges::find(candidates_, found, &BucketCandidate::bytes);
  if (bytes_ == 0 && known != candidates_.end()) {
    chosen_ = static_cast<std::size_t>(known - candidates_.begin());
    found_ = found;
    tell(fmt::format("{:.4g} MiB, as found before", static_cast<double>(found) / (1 << 20)));
    return Status();
  }
  search_ = BucketSearch(candidates_.size());
  if (!search_.ended()) chosen_ = search_.candidate();
  return Status();
}

Status BucketChoice::step_took(Duration time, TimePoint deadline) {
  if (search_.ended()) return Status();
  search_.step_took(time);
  if (!search_.ended()) {
    chosen_ = search_.candidate();
    return Status();
  }
  const std::vector<Duration> medians = search_.medians();
  for (std::size_t i = 0; i < medians.size(); ++i) times_[i] = static_cast<float>(1e3 * seconds(medians[i]));
  SYNCOPATE_RETURN_IF_ERROR(collective_.all_reduce(times_, deadline));
  chosen_ = fastest(times_);
  found_ = candidates_[chosen_].bytes;
  tell(describe_search(candidates_, times_, collective_.size()));
  return Status();
}

void BucketChoice::leave() const {
  if (!search_.ended()) tell(fmt::format("not found: a search takes {} steps", search_.steps()));
}

}  // namespace syncopate::allreduce
