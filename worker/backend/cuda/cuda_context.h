// The context that the operations of one CUDA backend share.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstddef>
#include <span>
#include <utility>

#include "common/clock.h"
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
  Duration timeout{};  // of waits for the device

  // Grows the workspace to at least `bytes`.
  Status reserve(std::size_t bytes) { return grow(workspace, bytes); }

  // Makes `memory`, which is of the device, at least `bytes` long. What was in it is lost, once the device is done with
  // it: the old memory goes first, so that there is never more than what is needed.
  Status grow(std::span<std::byte>& memory, std::size_t bytes) const {
    if (bytes <= memory.size()) return {};
    SYNCOPATE_RETURN_IF_ERROR(device->release(std::exchange(memory, {}), SteadyClock().now() + timeout));
    SYNCOPATE_ASSIGN_OR_RETURN(memory, device->allocate(bytes));
    return {};
  }
};

}  // namespace syncopate::worker
