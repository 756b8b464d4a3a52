// A strategy with a fault between the worker and it, as a defect of ours would put it there: what equality checks must
// notice.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "common/sync_strategy.h"

namespace syncopate::testing_support {

struct PlantedFault {
  // Spoils the gradients of a bucket before they are handed over.
  std::function<void(int rank, std::size_t bucket, std::span<float> gradients)> gradients = {};
  // The last part of the arena, in eighths of it, whose weights come a step late, as from a shard that is stale. Of
  // strategies that take their weights from others alone.
  std::size_t stale_eighths = 0;
};

class FaultyStrategy final : public SyncStrategy {
 public:
  // `inner` outlives this object.
  FaultyStrategy(SyncStrategy& inner, int rank, PlantedFault fault)
      : inner_(inner), rank_(rank), fault_(std::move(fault)) {}

  Result<ParamArenas> allocate(const ParamLayout& layout) override {
    Result<ParamArenas> arenas = inner_.allocate(layout);
    if (arenas.ok()) arenas_ = *arenas;
    return arenas;
  }
  Resumable* resumable() override { return inner_.resumable(); }
  Result<std::vector<Range>> join() override {
    Result<std::vector<Range>> buckets = inner_.join();
    if (buckets.ok()) buckets_ = *buckets;
    last_ = late();
    return buckets;
  }
  std::int64_t first_step() const override { return inner_.first_step(); }
  void begin_step(const StepContext& step) override { inner_.begin_step(step); }
  void gradient_ready(std::size_t bucket) override {
    if (fault_.gradients) fault_.gradients(rank_, bucket, slice(arenas_.gradients, buckets_[bucket]));
    inner_.gradient_ready(bucket);
  }
  void gradients_complete() override { inner_.gradients_complete(); }
  void step_given() override { inner_.step_given(); }
  Result<SyncStats> finish_step() override {
    Result<SyncStats> stats = inner_.finish_step();
    const std::vector<float> fresh = late();
    std::copy(last_.begin(), last_.end(), arenas_.weights.end() - static_cast<std::ptrdiff_t>(last_.size()));
    last_ = fresh;
    return stats;
  }
  Status weights_needed(Range range) override { return inner_.weights_needed(range); }
  Status weights_needed_again(Range range) override { return inner_.weights_needed_again(range); }
  Status gather_weights(bool wanted) override { return inner_.gather_weights(wanted); }
  Status leave() override { return inner_.leave(); }

 private:
  std::vector<float> late() const {
    const std::size_t count = arenas_.weights.size() * fault_.stale_eighths / 8;
    const std::span<float> weights = arenas_.weights.last(count);
    return {weights.begin(), weights.end()};
  }

  SyncStrategy& inner_;
  const int rank_;
  const PlantedFault fault_;
  ParamArenas arenas_;
  std::vector<Range> buckets_;
  std::vector<float> last_;  // what the late part held before the last step
};

}  // namespace syncopate::testing_support
