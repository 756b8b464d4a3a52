// Device: an accelerator's memory, and work on it that runs beside the host.
//
// Work is enqueued on streams. Each stream does its work in order; streams run beside each other, and an event lets one
// stream wait for a point of another. Nothing here waits unless it says so. Failures are kept: status() returns the
// first one, after which further work is ignored.
//
// A device and the objects that it has made are used by one thread; these objects must not outlive it. ps and allreduce
// use accelerators only through this interface. Tests run the same code on tests/support/shadow_device.h.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "common/clock.h"
#include "common/optimizer/optimizer.h"
#include "common/status.h"
#include "common/tensor_span.h"

namespace syncopate {

struct LossScale;
namespace update_rule {
struct UpdateConstants;
}

// A point in a stream's work, once it is recorded there. It may be recorded again and again.
class Event {
 public:
  virtual ~Event() = default;
};

// The optimizer state of a range of weights on a device, like OptimizerState on the host. Unused parts are empty.
struct DeviceOptimizerState {
  std::array<std::span<float>, kMostMemories> memories;
};

// One update of a range of weights. All of it lies on the device.
struct DeviceUpdate {
  std::span<float> weights;
  ConstTensorSpan gradient;    // of each of them
  DeviceOptimizerState state;  // that of these weights, beginning with the first
  // Read when the update is made. If there is a loss scale, kStepsUnderWay of them, from which LossScale::choice takes.
  const update_rule::UpdateConstants* constants = nullptr;
  TensorSpan rounded_weights = {};        // receives the new weights, of the gradient's type; or none
  const LossScale* loss_scale = nullptr;  // by which the gradient is divided, and which may skip the update; or none
};

class Stream {
 public:
  virtual ~Stream() = default;

  // Both sides must have the same size, and neither may be touched before the copy is done. A copy runs beside the
  // host's work only if `host` lies in pinned memory.
  virtual void copy_to_host(std::span<const std::byte> device, std::span<std::byte> host) = 0;
  virtual void copy_to_device(std::span<const std::byte> host, std::span<std::byte> device) = 0;

  // Applies the rule as Optimizer::apply does, with the same rounding, and with weight decay for all of these weights.
  virtual void update(const OptimizerConfig& rule, const DeviceUpdate& update) = 0;
  // Sets scale.overflowed, on the device, unless all gradients are finite.
  virtual void look_for_overflow(ConstTensorSpan gradients, LossScale& scale) = 0;
  // scale.end_step(), on the device.
  virtual void end_step(LossScale& scale) = 0;

  // to = from, rounded to its type. Both have the same size, lie on the device, and do not overlap.
  virtual void convert(ConstTensorSpan from, TensorSpan to) = 0;

  virtual void record(Event& event) = 0;
  // Work enqueued on this stream from now on begins after the event's current point.
  virtual void wait_for(const Event& event) = 0;
};

// Host memory that is pinned for the life of this object, so that copies run beside the host's work.
class PinnedRange {
 public:
  virtual ~PinnedRange() = default;
};

// Work that was captured: given to the device again and again, as one piece.
class Graph {
 public:
  virtual ~Graph() = default;
};

// A device's own memory, in bytes; not that of the host.
struct DeviceMemory {
  std::size_t allocated = 0;  // by allocate(), and not released
  std::size_t free = 0;       // for whoever asks first, other processes too
  bool was_refused = false;   // allocate() has found no room
};

class Device {
 public:
  virtual ~Device() = default;

  // "NVIDIA H200 (GPU 0, 139 GiB)": as describe() of gpu_inventory.h
  virtual std::string description() const = 0;

  // Returns zeroed memory, aligned to 256 bytes; it lives as long as the device, or until it is released. Fails with
  // resource exhausted.
  virtual Result<std::span<std::byte>> allocate(std::size_t bytes) = 0;
  virtual Result<std::span<std::byte>> allocate_pinned(std::size_t bytes) = 0;
  virtual Result<std::unique_ptr<PinnedRange>> pin(std::span<std::byte> host) = 0;
  // Gives back the whole of what allocate() or allocate_pinned() has returned; nothing if it is empty. First waits
  // until all work enqueued so far, on any stream, is done. Fails with deadline exceeded, or with the device's failure;
  // the memory then stays until the device's end.
  virtual Status release(std::span<std::byte> memory, TimePoint deadline) = 0;
  virtual DeviceMemory memory() const = 0;

  // The stream on which the model's operations are enqueued.
  virtual Stream& compute() = 0;
  virtual Result<std::unique_ptr<Stream>> make_stream() = 0;
  virtual Result<std::unique_ptr<Event>> make_event() = 0;

  // Until end_capture, what this thread gives to the compute stream, and to streams that wait for its events, is not
  // done but captured. These streams wait for no other events, and the compute stream waits for them in the end.
  // Meanwhile nothing may be allocated, released, asked or waited for on the host. An event that is recorded in a
  // capture is recorded by each launch, and has a time once what follows the launch is done; only then it may be asked
  // after.
  virtual Status begin_capture() = 0;
  // Fails if something could not be captured; nothing was done then. Work keeps the addresses that it was given: they
  // must outlive the graph. It must not outlive the device.
  virtual Result<std::unique_ptr<Graph>> end_capture() = 0;
  // Enqueues all work of the graph on the compute stream.
  virtual void launch(Graph& graph) = 0;

  // Whether all work before the event's point is done. Also true once anything has failed, and before the first record.
  virtual bool done(const Event& event) = 0;
  // Returns the time between two points by the device's clock. done() must be true for both.
  virtual Duration between(const Event& begin, const Event& end) = 0;
  // Waits until the event's point is reached. Fails with deadline exceeded, or with the device's failure.
  virtual Status wait(const Event& event, TimePoint deadline) = 0;

  virtual Status status() const = 0;
};

// Returns memory for `elements` floats.
Result<std::span<float>> allocate_floats(Device& device, std::size_t elements);
// Returns the state of `rule` for `elements` weights, as zeros.
Result<DeviceOptimizerState> allocate_state(Device& device, const OptimizerConfig& rule, std::size_t elements);

}  // namespace syncopate
