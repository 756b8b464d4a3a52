// HostExchange: copies tensors between the host's memory and a device's, through pinned memory. It waits for all
// earlier work of the compute stream, so it is for what happens once per epoch, not once per step (except for a worker
// that is slowed on purpose).
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
  // Takes ownership of `event`. The device must outlive it. Waits fail after `timeout`.
  HostExchange(Device& device, std::unique_ptr<Event> event, Duration timeout)
      : device_(device), event_(std::move(event)), timeout_(timeout) {}

  Status upload(std::span<const std::byte> host, std::span<std::byte> tensor);
  // Returns the contents of `tensor`, in pinned memory; valid until the next call.
  Result<std::span<const std::byte>> view(std::span<const std::byte> tensor);
  // Waits until all work enqueued on the compute stream so far is done.
  Status wait();

 private:
  // Returns pinned memory, allocated anew if the last was too small; a run needs few sizes.
  Result<std::span<std::byte>> pinned(std::size_t bytes);

  Device& device_;
  std::unique_ptr<Event> event_;
  Duration timeout_;
  std::span<std::byte> pinned_;
};

}  // namespace syncopate::worker
