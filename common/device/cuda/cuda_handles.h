// What lies below a device made by open_cuda_device: for code that gives work to CUDA's libraries itself. A handle
// lives as long as what it was taken from.
#pragma once

#include <cuda_runtime_api.h>

#include "common/device/device.h"

namespace syncopate {

// The arguments are of a CUDA device.
cudaStream_t raw(Stream& stream);
cudaEvent_t raw(const Event& event);
// As cudaSetDevice takes it.
int gpu_index(const Device& device);

}  // namespace syncopate
