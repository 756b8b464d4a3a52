#include "experiments/cluster/coordinator/batch_queue.h"

#include <algorithm>
#include <utility>

namespace syncopate::experiments {
namespace {

constexpr std::int64_t kParts = 2;     // a range is at most 1 / (kParts x workers) of what is left
constexpr std::int64_t kShortest = 8;  // and at least 1 / kShortest of what is wanted
constexpr std::int64_t kMost = 10000;  // largest range for any request

}  // namespace

BatchQueue::BatchQueue(std::int64_t batches, int workers, std::int64_t done) : batches_(batches), workers_(workers) {
  go_back(done);
}

std::optional<BatchRange> BatchQueue::draw(int worker, std::int64_t wanted) {
  if (left() == 0) return std::nullopt;
  wanted = std::clamp<std::int64_t>(wanted, 1, kMost);
  const std::int64_t guided = left() / (kParts * workers_);
  const std::int64_t most = std::max({std::min(wanted, guided), wanted / kShortest, std::int64_t{1}});
  BatchRange range;
  if (!returned_.empty()) {
    range.begin = range.end = *returned_.begin();
    while (range.size() < most && returned_.erase(range.end) > 0) ++range.end;
  } else {
    range = {next_, next_ + std::min(most, batches_ - next_)};
    next_ = range.end;
  }
  for (std::int64_t batch = range.begin; batch < range.end; ++batch) held_[worker].insert(batch);
  return range;
}

void BatchQueue::finish(int worker, std::int64_t batch) {
  // A batch that the worker does not hold any more has still been trained, unless it was given to another worker.
  if (held_[worker].erase(batch) > 0 || returned_.erase(batch) > 0) ++done_;
}

void BatchQueue::hold_only(int worker, std::span<const std::int64_t> held) {
  std::set<std::int64_t> kept;
  for (const std::int64_t batch : held) {
    if (held_[worker].erase(batch) > 0) kept.insert(batch);
  }
  returned_.merge(held_[worker]);
  held_[worker] = std::move(kept);
}

void BatchQueue::go_back(std::int64_t done) {
  next_ = done_ = std::clamp<std::int64_t>(done, 0, batches_);
  returned_.clear();
  held_.clear();
}

}  // namespace syncopate::experiments
