// Device: an accelerator's memory, and work on it that goes on beside the host.
//
// Work is given to streams and done in the order given within each; streams run beside each other, and an event puts
// work of one behind work of another. Nothing here waits unless it says so. What fails is kept: status() tells the
// first failure, after which further work is ignored.
//
// A device and what it has made are used by one thread; what it has made does not outlive it. ps and allreduce know
// accelerators through this alone. Tests drive the same code over tests/support/shadow_device.h.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "common/clock.h"
#include "common/optimizer/optimizer.h"
#include "common/status.h"

namespace syncopate {

// A point in a stream's work, once recorded there. May be recorded again and again.
class Event {
 public:
  virtual ~Event() = default;
};

// Of a range of weights on a device: what OptimizerState is on the host. Unused parts are empty.
struct DeviceOptimizerState {
  std::span<float> first;
  std::span<float> second;
};

class Stream {
 public:
  virtual ~Stream() = default;

  // Both sides have the same size, and neither may be touched before the copy is done. A copy runs beside the host's
  // work only where `host` lies in pinned memory.
  virtual void copy_to_host(std::span<const std::byte> device, std::span<std::byte> host) = 0;
  virtual void copy_to_device(std::span<const std::byte> host, std::span<std::byte> device) = 0;

  // One rule of Optimizer::apply on device memory, with the same rounding, and with weight decay for all of these
  // weights. `state` is that of these weights, from the first on.
  virtual void update(const OptimizerConfig& rule, std::span<float> weights, std::span<const float> gradient,
                      const DeviceOptimizerState& state, const UpdateStep& step) = 0;

  virtual void record(Event& event) = 0;
  // What is given to this stream from now on begins after the event's point as it is now.
  virtual void wait_for(const Event& event) = 0;
};

// Optimizer::apply on device memory: the update of `range` of the whole arenas, whose `undecayed` ranges
// (decay_parts.h) weight decay leaves out.
void update_range(Stream& stream, const OptimizerConfig& rule, std::span<const Range> undecayed, Range range,
                  std::span<float> weights, std::span<const float> gradients, const DeviceOptimizerState& state,
                  const UpdateStep& step);

// Host memory made fit for copies that run beside the host's work, for as long as this lives.
class PinnedRange {
 public:
  virtual ~PinnedRange() = default;
};

class Device {
 public:
  virtual ~Device() = default;

  // "NVIDIA H200 (GPU 0, 139 GiB)"
  virtual std::string description() const = 0;

  // Zeroed, aligned to 256 bytes; lives as long as the device. Resource exhausted where there is not so much.
  virtual Result<std::span<std::byte>> allocate(std::size_t bytes) = 0;
  virtual Result<std::span<std::byte>> allocate_pinned(std::size_t bytes) = 0;
  virtual Result<std::unique_ptr<PinnedRange>> pin(std::span<std::byte> host) = 0;

  // The stream that the model's operations are given to.
  virtual Stream& compute() = 0;
  virtual Result<std::unique_ptr<Stream>> make_stream() = 0;
  virtual Result<std::unique_ptr<Event>> make_event() = 0;

  // Whether all work before the event's point is done; also once anything has failed. True before the first record.
  virtual bool done(const Event& event) = 0;
  // Between two points of which done() is true, by the device's clock.
  virtual Duration between(const Event& begin, const Event& end) = 0;
  // Waits until the event's point is reached; deadline exceeded if it is not in time, or the device's failure.
  virtual Status wait(const Event& event, TimePoint deadline) = 0;

  virtual Status status() const = 0;
};

// Memory for `elements` floats.
Result<std::span<float>> allocate_floats(Device& device, std::size_t elements);
// What `rule` remembers of `elements` weights: zeros.
Result<DeviceOptimizerState> allocate_state(Device& device, OptimizerKind rule, std::size_t elements);

}  // namespace syncopate
