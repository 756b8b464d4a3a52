#include "worker/work.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace syncopate::worker {

Status Quota::begin(std::int64_t first_step) {
  batches_.seek(first_step);
  return {};
}

Result<std::optional<std::int64_t>> Quota::next(std::int64_t step) {
  if (step >= total_steps_) return std::optional<std::int64_t>();
  return std::optional(step * workers_);
}

UntilUpdated::UntilUpdated(BatchSource& batches, SyncStrategy& strategy, int needed, std::int64_t job_batches)
    : batches_(batches), strategy_(strategy), needed_(needed), job_batches_(job_batches) {
  assert(needed >= 1);
}

Status UntilUpdated::begin(std::int64_t first_step) {
  batches_.seek(first_step);
  return {};
}

Result<std::optional<std::int64_t>> UntilUpdated::next(std::int64_t /*step*/) {
  const std::int64_t last = updates_of(job_batches_, static_cast<int>(needed_));
  const auto updates = [&] { return strategy_.updates().value_or(0); };
  // Where weights come while the next forward pass runs, the answers to the last push may not be here yet.
  if (updates() + 1 >= last) {
    SYNCOPATE_RETURN_IF_ERROR(strategy_.weights_needed({0, std::numeric_limits<std::size_t>::max()}));
  }
  if (updates() >= last) return std::optional<std::int64_t>();
  return std::optional(std::min(updates() * needed_, job_batches_ - 1));
}

}  // namespace syncopate::worker
