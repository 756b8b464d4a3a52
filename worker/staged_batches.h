// StagedBatches: the batches of a source of the host's memory, on a device.
//
// The next batch is copied there by a stream of its own while the device computes with this one. Where the source tells
// its memory, that is pinned, and nothing is copied on the host.
#pragma once

#include <array>
#include <memory>

#include "common/device/device.h"
#include "worker/batch_source.h"

namespace syncopate::worker {

class StagedBatches final : public BatchSource {
 public:
  // Both outlive the result. `timeout` bounds the wait for a copy.
  // `by_order`: the source gives what is ordered, and one batch has been, for its form alone.
  static Result<std::unique_ptr<StagedBatches>> create(BatchSource& source, Device& device, const Clock& clock,
                                                       Duration timeout, bool by_order = false);

  // In the device's memory, for work of its compute stream that is given from now on. The caller has given all work
  // that reads the batch before.
  BatchView next() override;
  void seek(std::int64_t step) override;
  void order(std::int64_t number) override;
  void forget_orders() override;
  Status status() const override { return status_; }

 private:
  struct Slot {
    std::span<std::byte> values;
    std::span<std::byte> ids;
    std::span<std::byte> labels;
    std::unique_ptr<Event> copied;  // on the copy stream
    std::unique_ptr<Event> used;    // on the compute stream
  };

  StagedBatches(BatchSource& source, Device& device, const Clock& clock, Duration timeout, bool by_order)
      : source_(source), device_(device), clock_(clock), timeout_(timeout), by_order_(by_order) {}
  Status prepare();
  void begin_copy(Slot& slot, const BatchView& batch);
  // Begins to copy the source's next batch.
  void stage(Slot& slot);

  BatchSource& source_;
  Device& device_;
  const Clock& clock_;
  const Duration timeout_;
  const bool by_order_;
  std::unique_ptr<PinnedRange> pinned_;
  std::unique_ptr<Stream> copies_;
  std::array<Slot, 2> slots_;  // in turns
  std::size_t taken_ = 0;      // batches
  std::int64_t step_ = 0;      // that next() goes on with
  std::int64_t ordered_ = 0;   // batches whose copy has not begun, where they are ordered
  bool is_staged_ = false;     // the copy of what next() gives has begun
  Status status_;              // the first failure; after it, no more batches
};

}  // namespace syncopate::worker
