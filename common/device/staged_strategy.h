// StagedStrategy: lets a model that computes on a device use a strategy that works in the host's memory.
//
// As soon as backward has finished a bucket on the device, a copy stream copies it to the inner strategy's gradients;
// once it has arrived, it is passed to the inner strategy, while backward goes on. New weights are copied back on the
// same stream, range by range as the inner strategy gets them. What is small is copied together with its neighbours: a
// bucket here is as many of the inner strategy's as have kLeastCopy bytes.
#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "common/device/device.h"
#include "common/sync_strategy.h"

namespace syncopate {

class StagedStrategy final : public SyncStrategy, public Resumable {
 public:
  // What PCI Express carries in about 10 us, which is what giving a copy and its events costs the host.
  static constexpr std::size_t kLeastCopy = 256 * 1024;

  // All arguments must outlive this object. `timeout` bounds each wait for the device. `element` is the type that the
  // model computes with: what is copied is float32, converted on the device.
  StagedStrategy(SyncStrategy& inner, Device& device, ElementType element, const Clock& clock, Duration timeout,
                 std::size_t least_copy = kLeastCopy)
      : inner_(inner), device_(device), element_(element), clock_(clock), timeout_(timeout), least_copy_(least_copy) {}
  ~StagedStrategy() override { inner_.on_weights(nullptr); }

  // As the inner strategy.
  Resumable* resumable() override { return inner_.resumable() != nullptr ? this : nullptr; }
  Result<ParamArenas> allocate(const ParamLayout& layout) override;
  // This and save() require that the inner strategy is resumable.
  Status restore(const TrainingState& state) override;
  Result<std::vector<Range>> join() override;
  std::int64_t first_step() const override { return inner_.first_step(); }
  std::optional<std::int64_t> updates() const override { return inner_.updates(); }
  Status save(TrainingState& state) const override { return inner_.resumable()->save(state); }
  void begin_step(const StepContext& step) override;
  void gradient_ready(std::size_t bucket) override;
  // Returns the inner strategy's figures, with the time of the copies. The wait is from the end of backward on the
  // device to the arrival of the weights there, less the inner strategy's update.
  Result<SyncStats> finish_step() override;
  Status leave() override;
  JobWeights job_weights() const override { return inner_.job_weights(); }

 private:
  // The copy of one bucket from the device.
  struct Bucket {
    Range range;
    std::size_t inner_end = 0;      // the inner strategy's buckets up to here are in it or before it
    std::unique_ptr<Event> ready;   // on the compute stream
    std::unique_ptr<Event> copied;  // on the copy stream
  };

  TimePoint deadline() const { return clock_.now() + timeout_; }
  Status prepare(const std::vector<Range>& buckets);
  // Passes a bucket that has arrived to the inner strategy.
  void hand_over(const Bucket& bucket);
  Duration time_of_copy(std::size_t bucket) const;
  // Begins to copy new weights to the device, once they are enough.
  void send_weights(Range range);
  void flush_weights();
  // Makes the compute stream see all weights that were sent. Waits until they have arrived.
  Status settle_weights();
  Status make_events(std::initializer_list<std::unique_ptr<Event>*> events);

  SyncStrategy& inner_;
  Device& device_;
  const ElementType element_;
  const Clock& clock_;
  const Duration timeout_;
  const std::size_t least_copy_;
  ParamArenas host_;            // the inner strategy's
  ParamArenas arenas_;          // the device's
  std::span<float> gradients_;  // on the device, as they are copied
  std::unique_ptr<PinnedRange> pinned_weights_;
  std::unique_ptr<PinnedRange> pinned_gradients_;
  std::unique_ptr<Stream> copies_;
  std::vector<Bucket> buckets_;
  // Copies of weights to the device, on the copy stream. There are as many as the inner strategy reports ranges.
  struct WeightsCopy {
    std::unique_ptr<Event> begin;
    std::unique_ptr<Event> end;
  };
  std::vector<WeightsCopy> weights_copies_;
  std::size_t weights_sent_ = 0;    // copies since the last settle_weights()
  Range unsent_;                    // weights that have come since the last copy; next to one another
  std::unique_ptr<Event> settled_;  // on the compute stream
  std::size_t handed_over_ = 0;     // buckets of this step passed to the inner strategy
  std::size_t inner_handed_ = 0;    // the same, as it counts them
};

}  // namespace syncopate
