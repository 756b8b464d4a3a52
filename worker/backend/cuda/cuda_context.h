// The context that the operations of one CUDA backend share.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstddef>
#include <span>

#include "common/device/device.h"
#include "worker/backend/cuda/fold_space.h"
#include "worker/backend/precision.h"

namespace syncopate::worker {

// Borrowed by every operation; must outlive it.
struct CudaContext {
  Device* device = nullptr;
  cudaStream_t stream = nullptr;  // receives all work, in order
  cublasLtHandle_t blas = nullptr;
  cudnnHandle_t dnn = nullptr;
  // Device memory for one operation at a time, which the order of the stream ensures.
  std::span<std::byte> workspace;
  FoldSpace fold;  // likewise
  Precision precision = Precision::kFp32;

  // Grows the workspace to at least `bytes`.
  Status reserve(std::size_t bytes) {
    if (bytes <= workspace.size()) return {};
    const Result<std::span<std::byte>> memory = device->allocate(bytes);
    if (memory.ok()) workspace = *memory;
    return memory.status();
  }
};

}  // namespace syncopate::worker
