// CUDA's runtime, but for its calls about streams, events and graphs, and the part of its driver that the product
// calls.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/software_gpu/accesses.h"
#include "tests/software_gpu/graphs.h"
#include "tests/software_gpu/machine.h"
#include "tests/software_gpu/memory.h"
#include "tests/software_gpu/pinned_copies.h"
#include "tests/software_gpu/runtime_call.h"
#include "tests/software_gpu/settings.h"
#include "tests/software_gpu/streams.h"

namespace software_gpu {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
thread_local int device = 0;

void check_the_end() {
  const std::lock_guard hold(machine_lock());
  expect_the_end();
  check_streams_at_end();
  check_graphs_at_end();
  check_memory_at_end();
}

struct Described {
  cudaError_t error;
  const char *name, *text;
};

// An error with CUDA's own name, and what it says.
const Described& described(cudaError_t error) {
#define SOFTWARE_GPU_ERROR(name, text) \
  { name, #name, text }
  static constexpr Described kErrors[] = {
      SOFTWARE_GPU_ERROR(cudaErrorUnknown, "unknown error"),
      SOFTWARE_GPU_ERROR(cudaSuccess, "no error"),
      SOFTWARE_GPU_ERROR(cudaErrorInvalidValue, "invalid argument"),
      SOFTWARE_GPU_ERROR(cudaErrorMemoryAllocation, "out of memory"),
      SOFTWARE_GPU_ERROR(cudaErrorInvalidConfiguration, "invalid configuration argument"),
      SOFTWARE_GPU_ERROR(cudaErrorInvalidDevice, "invalid device ordinal"),
      SOFTWARE_GPU_ERROR(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
      SOFTWARE_GPU_ERROR(cudaErrorNotReady, "device not ready"),
      SOFTWARE_GPU_ERROR(cudaErrorInvalidResourceHandle, "invalid resource handle"),
      SOFTWARE_GPU_ERROR(cudaErrorHostMemoryAlreadyRegistered,
                         "part or all of the requested memory range is already mapped"),
      SOFTWARE_GPU_ERROR(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
      SOFTWARE_GPU_ERROR(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
      SOFTWARE_GPU_ERROR(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
      SOFTWARE_GPU_ERROR(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
      SOFTWARE_GPU_ERROR(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
      SOFTWARE_GPU_ERROR(cudaErrorStreamCaptureMerge,
                         "operation would result in a merge of separate capture sequences"),
      SOFTWARE_GPU_ERROR(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
      SOFTWARE_GPU_ERROR(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
      SOFTWARE_GPU_ERROR(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
      SOFTWARE_GPU_ERROR(cudaErrorCapturedEvent,
                         "operation not permitted on an event last recorded in a capturing stream"),
      SOFTWARE_GPU_ERROR(cudaErrorStreamCaptureWrongThread,
                         "attempt to terminate a thread-local capture sequence from another thread"),
  };
#undef SOFTWARE_GPU_ERROR
  const auto* const found = std::ranges::find(kErrors, error, &Described::error);
  return found == std::end(kErrors) ? kErrors[0] : *found;
}

// Has what was left behind found when the program ends.
void check_at_end() {
  static const bool is_asked = std::atexit(check_the_end) == 0;
  (void)is_asked;
}

}  // namespace

Call::Call(const char* name, std::uint64_t bytes) : hold_(machine_lock()) {
  check_at_end();
  count(name, bytes);
  if (is_on_host_thread()) find_fault(std::string(name) + " in a function that a stream has called");
}

int device_of_thread() { return device; }

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

}  // namespace software_gpu

using namespace software_gpu;

namespace {

cudaError_t fill(void* memory, int value, std::size_t bytes, cudaStream_t stream, const char* name) {
  if (device_bytes_from(memory) < bytes) return remember(cudaErrorInvalidValue);
  give(stream, name, [=] {
    writes(memory, bytes);
    std::memset(memory, value, bytes);
  });
  return cudaSuccess;
}

const char* name_of(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDeviceToDevice) return "cudaMemcpyAsync.on_device";
  return kind == cudaMemcpyHostToDevice ? "cudaMemcpyAsync.to_device" : "cudaMemcpyAsync.to_host";
}

void copy(void* to, const void* from, std::size_t bytes) {
  reads(from, bytes);
  writes(to, bytes);
  std::memcpy(to, from, bytes);
}

// Between memory of the device's and pinned memory, or within the device's.
Make copy_of(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return [=]() -> Work {
    std::shared_ptr<PinnedCopy> pinned;
    if (kind == cudaMemcpyHostToDevice) pinned = begin_upload(from, bytes);
    if (kind == cudaMemcpyDeviceToHost) pinned = begin_download(to, bytes);
    return [=] {
      if (pinned) carry_out(pinned);
      copy(to, from, bytes);
      return Progress::kDone;
    };
  };
}

}  // namespace

extern "C" {

cudaError_t cudaPeekAtLastError() { return sticky_error() != cudaSuccess ? sticky_error() : last_error; }

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}

const char* cudaGetErrorName(cudaError_t error) { return described(error).name; }
const char* cudaGetErrorString(cudaError_t error) { return described(error).text; }

cudaError_t cudaSetDevice(int number) {
  const Call call("cudaSetDevice");
  if (number < 0 || number >= settings().devices) return remember(cudaErrorInvalidDevice);
  device = number;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* /*function*/) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, size_t bytes) {
  return answer({"cudaMalloc", bytes}, kAfterFailure | kInCapture, [&] { return allocate(memory, bytes); });
}

// Waits for all work of the device, as the real one does.
cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  if (const cudaError_t unsafe = check_unsafe_call()) return unsafe;
  (void)wait_for_all();
  return answer({"cudaFree"}, kNever, [&] { return release(memory); });
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned /*flags*/) {
  return answer({"cudaHostAlloc", bytes}, kAfterFailure | kInCapture, [&] { return allocate_pinned(memory, bytes); });
}

cudaError_t cudaFreeHost(void* memory) {
  if (const cudaError_t unsafe = check_unsafe_call()) return unsafe;
  (void)wait_for_all();
  return answer({"cudaFreeHost"}, kNever, [&] { return release_pinned(memory); });
}

cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned /*flags*/) {
  return answer({"cudaHostRegister", bytes}, kAfterFailure | kInCapture, [&] { return pin(memory, bytes); });
}

cudaError_t cudaHostUnregister(void* memory) {
  return answer({"cudaHostUnregister"}, kInCapture, [&] { return unpin(memory); });
}

cudaError_t cudaMemGetInfo(size_t* left, size_t* total) {
  const Call call("cudaMemGetInfo");
  *left = free_memory();
  *total = settings().memory;
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  return answer({"cudaMemsetAsync", bytes}, kAfterFailure, [&] {
    if (const cudaError_t wrong = check_stream(stream)) return wrong;
    return fill(memory, value, bytes, stream, "cudaMemsetAsync");
  });
}

// On the default stream, and late.
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  return answer({"cudaMemset", bytes}, kAfterFailure | kInCapture,
                [&] { return fill(memory, value, bytes, legacy_stream(), "cudaMemset"); });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  count("cudaStreamSynchronize");
  if (const cudaError_t unsafe = check_unsafe_call()) return unsafe;
  return wait_for_stream(stream);
}

cudaError_t cudaDeviceSynchronize() {
  count("cudaDeviceSynchronize");
  if (const cudaError_t wrong = check_no_capture()) return wrong;
  return wait_for_all();
}

// A copy from pageable memory is made of what is there when it is called; one to pageable memory lasts until it is
// done.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const char* const name = name_of(kind);
  const bool is_up = kind == cudaMemcpyHostToDevice, is_down = kind == cudaMemcpyDeviceToHost;
  {
    const Call call(name, bytes);
    if (sticky_error() != cudaSuccess) return remember(sticky_error());
    if (const cudaError_t wrong = check_stream(stream)) return wrong;
    const auto is_on_device = [&](const void* memory) { return device_bytes_from(memory) >= bytes; };
    const auto is_on_host = [&](const void* memory) { return memory != nullptr && device_bytes_from(memory) == 0; };
    const bool is_known = is_up || is_down || kind == cudaMemcpyDeviceToDevice;
    if (!is_known || !(is_up ? is_on_host(from) : is_on_device(from)) ||
        !(is_down ? is_on_host(to) : is_on_device(to))) {
      return remember(cudaErrorInvalidValue);
    }
    const bool is_pageable = kind != cudaMemcpyDeviceToDevice && !is_pinned(is_up ? from : to, bytes);
    if (!is_pageable) {
      give_made(stream, name, copy_of(to, from, bytes, kind));
      return cudaSuccess;
    }
    count("cudaMemcpyAsync.pageable", bytes);
    if (const auto capture = capture_of(stream)) return invalidate(*capture, cudaErrorStreamCaptureUnsupported);
    if (is_up) {
      const auto* const begin = static_cast<const char*>(from);
      const auto staged = std::make_shared<std::vector<char>>(begin, begin + bytes);
      give(stream, name, [=] { copy(to, staged->data(), bytes); });
      return cudaSuccess;
    }
    give(stream, name, [=] { copy(to, from, bytes); });
  }
  return wait_for_stream(stream);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return answer({"cudaLaunchHostFunc"}, kAfterFailure, [&] {
    if (const cudaError_t wrong = check_stream(stream)) return wrong;
    give_made(stream, "a function of the host", on_host([=] { function(data); }), true);
    return cudaSuccess;
  });
}

// The driver's, which common/device/gpu_inventory.cc finds in libcuda.so.1.

int cuInit(unsigned /*flags*/) { return settings().devices > 0 ? 0 : 100; }

int cuGetErrorName(int /*error*/, const char** name) {
  *name = "CUDA_ERROR_NO_DEVICE";
  return 0;
}

int cuDeviceGetCount(int* devices) {
  *devices = settings().devices;
  return 0;
}

int cuDeviceGet(int* handle, int number) {
  *handle = number;
  return 0;
}

int cuDeviceGetName(char* name, int bytes, int /*handle*/) {
  std::snprintf(name, static_cast<std::size_t>(bytes), "a software GPU");
  return 0;
}

int cuDeviceTotalMem_v2(size_t* bytes, int /*handle*/) {
  *bytes = settings().memory;
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int /*handle*/) {
  constexpr int kCapabilityMajor = 75;
  *value = attribute == kCapabilityMajor ? 9 : 0;
  return 0;
}

}  // extern "C"
