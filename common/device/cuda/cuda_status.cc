#include "common/device/cuda/cuda_status.h"

#include <fmt/format.h>

namespace syncopate {

Status cuda_status(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return {};
  const Code code = result == cudaErrorMemoryAllocation ? Code::kResourceExhausted : Code::kInternal;
  return Status(code, fmt::format("{}: {} ({})", call, cudaGetErrorName(result), cudaGetErrorString(result)));
}

void forget_last_cuda_error() { static_cast<void>(cudaGetLastError()); }

bool FirstFailure::keep(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return true;
  forget_last_cuda_error();
  if (none()) status_ = cuda_status(result, call).in(where_);
  return false;
}

}  // namespace syncopate
