// StagedBatches: copies the batches of a source in the host's memory to a device.
//
// The next batch is copied by a stream of its own while the device computes with the current one. If the source reports
// its memory, that memory is pinned, and nothing is copied on the host.
#pragma once

#include <array>
#include <memory>

#include "common/device/device.h"
#include "worker/batch_source.h"

namespace syncopate::worker {

class StagedBatches final : public BatchSource {
 public:
  // `source`, `device` and `clock` must outlive the result. `timeout` bounds the wait for a copy. `by_order`: the
  // source works by orders; one batch must have been ordered already, from which the form is taken.
  static Result<std::unique_ptr<StagedBatches>> create(BatchSource& source, Device& device, const Clock& clock,
                                                       Duration timeout, bool by_order = false);

  // Returns a batch in the device's memory, for work that is enqueued on the compute stream from now on. The caller
  // must have enqueued all work that reads the previous batch.
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
    std::span<std::byte> targets;
    std::vector<float> costs;       // on the host
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
  std::int64_t step_ = 0;      // of the batch that next() returns next
  std::int64_t ordered_ = 0;   // ordered batches whose copy has not begun
  bool is_staged_ = false;     // the copy of the batch that next() returns has begun
  Status status_;              // the first failure; after it there are no more batches
};

}  // namespace syncopate::worker
