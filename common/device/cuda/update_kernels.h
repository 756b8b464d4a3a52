// The update rules of common/optimizer/update_rule.h as kernels: one pass over memory an update. They round as
// Optimizer::apply does: compiled without contraction and with denormals flushed (cmake/Options.cmake), with IEEE
// division and root.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "common/optimizer/optimizer.h"

namespace syncopate {

// On the device; none overlaps another. A rule that does not remember leaves `first` or `second` untouched: null will
// do.
struct UpdateOperands {
  float* weights = nullptr;
  const float* gradient = nullptr;
  float* first = nullptr;   // momentum's velocity, adam's m, adagrad's sum of squares, ftrl's z
  float* second = nullptr;  // adam's v, ftrl's n
  std::size_t count = 0;    // elements of each; at least 1
};

// Gives the update to `stream`, which is of the current GPU. What CUDA says of the launch.
cudaError_t launch_update(const OptimizerConfig& rule, const UpdateStep& step, const UpdateOperands& operands,
                          cudaStream_t stream);

// Loads the kernels on the current GPU. Else they would be loaded at their first launch, which may have to wait for
// work under way (CUDA C++ Programming Guide, "Lazy Loading"). cudaErrorNoKernelImageForDevice, or
// cudaErrorInvalidDeviceFunction, where the program holds no code for this GPU.
cudaError_t load_update_kernels();

}  // namespace syncopate
