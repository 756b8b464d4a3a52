// The CUDA handles of a device made by open_cuda_device, for code that enqueues work of CUDA's libraries itself. A
// handle lives as long as the object it was taken from.
#pragma once

#include <cuda_runtime_api.h>

#include "common/device/cuda/cuda_status.h"
#include "common/device/device.h"

namespace syncopate {

// The arguments must belong to a CUDA device.
cudaStream_t raw(Stream& stream);
cudaEvent_t raw(const Event& event);
// The index as cudaSetDevice takes it.
int gpu_index(const Device& device);
// What Device::status() returns. Whoever gives work to the device names it there, and hands in what CUDA said.
FirstFailure& failure_of(Device& device);

}  // namespace syncopate
