// DeviceCollective: operations that all ranks of a group carry out together on device memory, in the order of a stream.
// Every rank gives the same operations in the same order with buffers of the same length. One thread per instance.
#pragma once

#include <span>
#include <string>

#include "common/clock.h"
#include "common/device/device.h"
#include "common/status.h"

namespace syncopate::allreduce {

enum class Reduction { kSum, kMean };

class DeviceCollective {
 public:
  virtual ~DeviceCollective() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // "nccl"
  virtual const char* name() const = 0;
  // The library's choices, for the record: "NCCL 2.28.9, Ring, LL128".
  virtual std::string description() const = 0;

  // Tells that buffers within `memory` will be given again and again, so that the library may prepare it for its wires.
  // Once; the memory must outlive the collective. No failure: what cannot be prepared is used as it is.
  virtual void prepare(TensorSpan memory) = 0;

  // Enqueues on `stream`: leaves the sum or mean over all ranks in every rank's buffers, in place. The library may
  // reduce those of one call together. A mean of 16-bit numbers may be off by as much as 1/n rounded to 16 bits is.
  virtual Status all_reduce(std::span<const TensorSpan> buffers, Reduction reduction, Stream& stream) = 0;
  // Enqueues on `stream`: copies the root's buffer to every rank's.
  virtual Status broadcast(TensorSpan buffer, int root, Stream& stream) = 0;

  // Waits for an event that follows such work. If the work cannot be completed, it is aborted on every stream: fails
  // with deadline exceeded, peer lost, or cancelled after interrupt().
  virtual Status wait(const Event& event, TimePoint deadline) = 0;

  // Makes current and future waits return cancelled. Any thread.
  virtual void interrupt() = 0;
};

}  // namespace syncopate::allreduce
