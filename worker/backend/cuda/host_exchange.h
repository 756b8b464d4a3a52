// HostExchange: tensors between the host's memory and a device's, through pinned memory. What stands before it in the
// stream of compute is waited for: it is for what happens once an epoch, not once a step
// (but for a worker that is to be slow).
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "common/clock.h"
#include "common/device/device.h"
#include "common/status.h"

namespace syncopate::worker {

class HostExchange {
 public:
  // `event` is its own from now on. The device must outlive it. Waits fail after `timeout`.
  HostExchange(Device& device, std::unique_ptr<Event> event, Duration timeout)
      : device_(device), event_(std::move(event)), timeout_(timeout) {}

  Status upload(std::span<const std::byte> host, std::span<std::byte> tensor);
  // What `tensor` holds, in pinned memory; valid until the next call.
  Result<std::span<const std::byte>> view(std::span<const std::byte> tensor);
  // Until all that was given to the stream of compute so far is done.
  Status wait();

 private:
  // Pinned memory, allocated anew where the last was too small; a run asks for few sizes.
  Result<std::span<std::byte>> pinned(std::size_t bytes);

  Device& device_;
  std::unique_ptr<Event> event_;
  Duration timeout_;
  std::span<std::byte> pinned_;
};

}  // namespace syncopate::worker
