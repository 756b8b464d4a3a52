// DeviceCollective: operations that all ranks of a group carry out together on device memory, in the order of a stream.
// Every rank gives the same operations in the same order with buffers of the same length. One thread per instance.
#pragma once

#include <span>
#include <string>

#include "common/clock.h"
#include "common/device/device.h"
#include "common/status.h"

namespace syncopate::allreduce {

class DeviceCollective {
 public:
  virtual ~DeviceCollective() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // "nccl"
  virtual const char* name() const = 0;
  // The library's choices, for the record: "NCCL 2.28.9, Ring, LL128".
  virtual std::string description() const = 0;

  // Enqueues on `stream`: leaves the mean over all ranks in every rank's buffer, in place.
  virtual Status all_reduce_mean(std::span<float> buffer, Stream& stream) = 0;
  // Enqueues on `stream`: copies the root's buffer to every rank's.
  virtual Status broadcast(std::span<float> buffer, int root, Stream& stream) = 0;

  // Waits for an event that follows such work. If the work cannot be completed, it is aborted on every stream: fails
  // with deadline exceeded, peer lost, or cancelled after interrupt().
  virtual Status wait(const Event& event, TimePoint deadline) = 0;

  // Makes current and future waits return cancelled. Any thread.
  virtual void interrupt() = 0;
};

}  // namespace syncopate::allreduce
