// ShadowDevice: a Device for tests, which does its work as late as it may and in the worst order that it may.
//
// Its memory is host memory of its own. Work that is given to its streams is done only when an event is waited for or
// asked about: each stream's in its order; between streams only events order, and a seed draws the rest. So whoever
// forgets an event, reads a copy too early, or changes what a copy still has to read, is found out under some seed.
//
// A copy overwrites its target with NaN before it is done: the host's at once, the device's when the copy begins (other
// streams may get their turn in between). What no device would take (memory that is not its own, lengths that differ,
// the time between points that are not reached) fails the running test. It knows no 16-bit numbers. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/device/device.h"
#include "common/os/aligned_buffer.h"
#include "tests/support/shadow_queue.h"

namespace syncopate::testing_support {

class ShadowDevice final : public Device {
 public:
  explicit ShadowDevice(std::uint64_t seed = 0);
  ~ShadowDevice() override;

  std::string description() const override { return "shadow device"; }
  Result<std::span<std::byte>> allocate(std::size_t bytes) override;
  Result<std::span<std::byte>> allocate_pinned(std::size_t bytes) override;
  // Refuses memory that is pinned already, as CUDA does.
  Result<std::unique_ptr<PinnedRange>> pin(std::span<std::byte> host) override;
  // Memory that is not its own fails the running test. Does not look at the clock, as wait().
  Status release(std::span<std::byte> memory, TimePoint deadline) override;
  DeviceMemory memory() const override { return {allocated_, memory_left_, was_refused_}; }
  Stream& compute() override;
  Result<std::unique_ptr<Stream>> make_stream() override;
  Result<std::unique_ptr<Event>> make_event() override;
  // Work of a capture is kept until its graph is launched. What no capture allows fails the running test: asking and
  // waiting on the host, and waits for events of before. A stream that the compute stream does not wait for in the end
  // fails the capture.
  Status begin_capture() override;
  Result<std::unique_ptr<Graph>> end_capture() override;
  void launch(Graph& graph) override;
  // May do some of the work that is asked about, so that whoever asks again and again gets there.
  bool done(const Event& event) override;
  // A microsecond for each piece of work done in between, on any stream.
  Duration between(const Event& begin, const Event& end) override;
  // Does not look at the clock: deadline exceeded at once if the device hangs.
  Status wait(const Event& event, TimePoint deadline) override;
  Status status() const override { return failure_; }

  // Work of the test's own, in the stream's order: a model's kernels, say. It touches what it likes.
  void give(Stream& stream, std::function<void()> work);
  // Does all work there is.
  void finish();
  // Pieces of work that are not done yet.
  std::size_t pending() const { return queues_.pending(); }

  // From now on allocations of all kinds get so many bytes in all, and then fail.
  void limit_memory(std::size_t bytes) { memory_left_ = bytes; }
  // The device fails when `pieces` more pieces of work (copies, updates, the test's own) were done; 0: at once.
  void fail_after(std::size_t pieces, Status failure);
  // From now on no work is done any more, until it is let go: waits pass their deadlines.
  void hang(bool hangs) { hangs_ = hangs; }
  // Copies from or to host memory that is not pinned: on a real device they hold the host up.
  std::size_t unpinned_copies() const { return unpinned_copies_; }

 private:
  class ShadowStream;
  class ShadowEvent;
  class ShadowPinned;
  class ShadowGraph;

  // One call of a capture.
  struct Captured {
    std::size_t queue = 0;
    std::function<void()> run = {};  // work
    std::span<const std::byte> host = {};
    std::shared_ptr<ShadowPoint>* records = nullptr;       // or an event that is recorded
    const std::shared_ptr<ShadowPoint>* awaits = nullptr;  // or waited for
  };

  void copy(std::size_t queue, std::span<const std::byte> from, std::span<std::byte> to,
            std::span<const std::byte> host);
  // One piece of work: counts towards fail_after, and is ignored once the device has failed.
  void push(std::size_t queue, std::function<void()> run, std::span<const std::byte> host);
  void fail(const Status& failure);
  Result<std::span<std::byte>> allocate_from(std::vector<AlignedBuffer>& memory, std::size_t bytes);
  void record(std::size_t queue, std::shared_ptr<ShadowPoint>& point);
  void await(std::size_t queue, const std::shared_ptr<ShadowPoint>& point);
  void check_is_not_capturing(const char* what) const;
  bool is_joined(std::size_t queue) const;
  bool is_device(std::span<const std::byte> range) const;
  bool is_pinned(std::span<const std::byte> range) const;

  ShadowQueues queues_;
  std::unique_ptr<ShadowStream> compute_;
  std::vector<AlignedBuffer> memory_;
  std::vector<AlignedBuffer> pinned_memory_;
  std::vector<std::span<const std::byte>> pinned_ranges_;  // through pin()
  std::size_t memory_left_ = std::numeric_limits<std::size_t>::max();
  std::size_t allocated_ = 0;  // of both kinds
  bool was_refused_ = false;
  std::size_t unpinned_copies_ = 0;
  std::optional<std::vector<Captured>> capture_;
  bool hangs_ = false;
  std::size_t pieces_left_ = std::numeric_limits<std::size_t>::max();
  Status failure_to_come_;
  Status failure_;
};

}  // namespace syncopate::testing_support
