#include "worker/backend/cuda/library_status.h"

#include <fmt/format.h>

namespace syncopate::worker {
namespace {

Status failure(const char* call, const char* message, bool out_of_memory) {
  return {out_of_memory ? Code::kResourceExhausted : Code::kInternal, fmt::format("{}: {}", call, message)};
}

}  // namespace

Status library_status(cublasStatus_t result, const char* call) {
  if (result == CUBLAS_STATUS_SUCCESS) return {};
  return failure(call, cublasLtGetStatusName(result), result == CUBLAS_STATUS_ALLOC_FAILED);
}

Status library_status(cudnnStatus_t result, const char* call) {
  if (result == CUDNN_STATUS_SUCCESS) return {};
  return failure(call, cudnnGetErrorString(result), false);
}

}  // namespace syncopate::worker
