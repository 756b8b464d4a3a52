// Accelerator: what the program for GPUs adds to a process. The program for the CPU has none: it is not linked with
// CUDA's libraries, which take longer to load than a short run lasts.
#pragma once

#include <memory>
#include <string>

#include "allreduce/device_collective.h"
#include "common/device/device.h"
#include "common/rendezvous.h"
#include "worker/backend/compute_backend.h"
#include "worker/backend/precision.h"

namespace syncopate::experiments {

class Accelerator {
 public:
  virtual ~Accelerator() = default;

  // Opens the device for the calling thread, which must then be the one that launches the device's work.
  virtual Result<std::unique_ptr<Device>> open_device(int gpu) const = 0;
  // Returns the libraries' versions, for the record.
  virtual std::string libraries() const = 0;
  // The device outlives the backend.
  virtual Result<std::unique_ptr<worker::ComputeBackend>> make_backend(Device& device,
                                                                       worker::Precision precision) const = 0;
  // Connects rank `rank` of `size`; all ranks meet at `rendezvous`.
  virtual Result<std::unique_ptr<allreduce::DeviceCollective>> connect_collective(int rank, int size, Device& device,
                                                                                  Rendezvous& rendezvous,
                                                                                  const Clock& clock,
                                                                                  Duration timeout) const = 0;
};

}  // namespace syncopate::experiments
