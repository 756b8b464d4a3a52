// What the operations of one CUDA backend share.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstddef>
#include <span>

#include "worker/backend/precision.h"

namespace syncopate::worker {

// Borrowed by every operation; outlives it.
struct CudaContext {
  cudaStream_t stream = nullptr;  // all work goes to it, in order
  cublasLtHandle_t blas = nullptr;
  cudnnHandle_t dnn = nullptr;
  // Device memory for one operation at a time, which the stream's order sees to.
  std::span<std::byte> workspace;
  Precision precision = Precision::kFp32;
};

}  // namespace syncopate::worker
