// The update rules of common/optimizer/update_rule.h as kernels: one pass over memory per update. They round as
// Optimizer::apply does: compiled without contraction and with denormals flushed (cmake/Options.cmake), with IEEE
// division and root.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "common/optimizer/optimizer.h"
#include "common/optimizer/update_constants.h"

namespace syncopate {

// Arrays on the device; none may overlap another. A rule without such state does not touch `first` or `second`, which
// may then be null.
struct UpdateOperands {
  float* weights = nullptr;
  const float* gradient = nullptr;
  float* first = nullptr;   // momentum's velocity, adam's m, adagrad's sum of squares, ftrl's z
  float* second = nullptr;  // adam's v, ftrl's n
  std::size_t count = 0;    // of each array; at least 1
};

// Enqueues the update on `stream`, which must be of the current GPU. `constants` lie on the device, and are read when
// the kernel runs. Returns the result of the launch.
cudaError_t launch_update(const OptimizerConfig& rule, const update_rule::UpdateConstants* constants,
                          const UpdateOperands& operands, cudaStream_t stream);

// Loads the kernels on the current GPU. Otherwise they would be loaded at their first launch, which may have to wait
// for running work (CUDA C++ Programming Guide, "Lazy Loading"). Returns cudaErrorNoKernelImageForDevice or
// cudaErrorInvalidDeviceFunction if the program contains no code for this GPU.
cudaError_t load_update_kernels();

}  // namespace syncopate
