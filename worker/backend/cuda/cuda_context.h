// The context that the operations of one CUDA backend share.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

#include "common/clock.h"
#include "common/device/device.h"
#include "common/tensor_span.h"
#include "worker/backend/cuda/fold_space.h"
#include "worker/backend/precision.h"

namespace syncopate::worker {

// Tensors that are given to libraries begin at a multiple of so many bytes, which is what they load at once at most.
inline constexpr std::uint32_t kTensorAlignment = 16;

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

  ElementType element_type() const { return element_type_of(precision); }

  // Refuses tensors that are not of this type, or not aligned; those that are empty will do.
  Status check(std::initializer_list<ConstTensorSpan> tensors) const {
    for (const ConstTensorSpan& tensor : tensors) {
      if (tensor.empty()) continue;
      if (tensor.type() != element_type()) {
        return Status::internal("a tensor is not of the type that the backend computes with");
      }
      if (reinterpret_cast<std::uintptr_t>(tensor.address()) % kTensorAlignment != 0) {
        return Status::internal("a tensor does not begin at a multiple of 16 bytes");
      }
    }
    return {};
  }

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
