// The update rules of common/optimizer/update_rule.h as kernels: one pass over memory per update. They round as
// Optimizer::apply does: compiled without contraction and with denormals flushed (cmake/Options.cmake), with IEEE
// division and root.
#pragma once

#include <cuda_runtime_api.h>

#include "common/device/device.h"
#include "common/optimizer/optimizer.h"

namespace syncopate {

// Enqueues the update on `stream`, which must be of the current GPU; there must be at least one weight. Arrays must not
// overlap. Returns the result of the launch.
cudaError_t launch_update(const OptimizerConfig& rule, const DeviceUpdate& update, cudaStream_t stream);

// Loads the kernels on the current GPU. Otherwise they would be loaded at their first launch, which may have to wait
// for running work (CUDA C++ Programming Guide, "Lazy Loading"). Returns cudaErrorNoKernelImageForDevice or
// cudaErrorInvalidDeviceFunction if the program contains no code for this GPU.
cudaError_t load_update_kernels();

}  // namespace syncopate
