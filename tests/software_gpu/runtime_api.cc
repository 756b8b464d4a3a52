// CUDA's runtime and the part of its driver that the product calls.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "tests/software_gpu/machine.h"
#include "tests/software_gpu/memory.h"
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
  check_memory_at_end();
}

// Has what was left behind found when the program ends.
void check_at_end() {
  static const bool is_asked = std::atexit(check_the_end) == 0;
  (void)is_asked;
}

// For the duration of a call: counts it, and holds the machine.
class Call {
 public:
  explicit Call(const char* name, std::uint64_t bytes = 0) : hold_(machine_lock()) {
    check_at_end();
    count(name, bytes);
  }

 private:
  std::lock_guard<std::recursive_mutex> hold_;
};

}  // namespace

int device_of_thread() { return device; }

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

}  // namespace software_gpu

using namespace software_gpu;

#define SOFTWARE_GPU_UNLESS_FAILED() \
  if (sticky_error() != cudaSuccess) return remember(sticky_error())

extern "C" {

cudaError_t cudaPeekAtLastError() { return sticky_error() != cudaSuccess ? sticky_error() : last_error; }

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorHostMemoryAlreadyRegistered:
      return "cudaErrorHostMemoryAlreadyRegistered";
    case cudaErrorHostMemoryNotRegistered:
      return "cudaErrorHostMemoryNotRegistered";
    case cudaErrorECCUncorrectable:
      return "cudaErrorECCUncorrectable";
    default:
      return "cudaErrorUnknown";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorECCUncorrectable:
      return "uncorrectable ECC error encountered";
    default:
      return cudaGetErrorName(error);
  }
}

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
  const Call call("cudaMalloc", bytes);
  SOFTWARE_GPU_UNLESS_FAILED();
  return allocate(memory, bytes);
}

// Waits for all work of the device, as the real one does.
cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  (void)wait_for_all();
  const Call call("cudaFree");
  return release(memory);
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned /*flags*/) {
  const Call call("cudaHostAlloc", bytes);
  SOFTWARE_GPU_UNLESS_FAILED();
  return allocate_pinned(memory, bytes);
}

cudaError_t cudaFreeHost(void* memory) {
  (void)wait_for_all();
  const Call call("cudaFreeHost");
  return release_pinned(memory);
}

cudaError_t cudaHostRegister(void* memory, size_t bytes, unsigned /*flags*/) {
  const Call call("cudaHostRegister", bytes);
  SOFTWARE_GPU_UNLESS_FAILED();
  return pin(memory, bytes);
}

cudaError_t cudaHostUnregister(void* memory) {
  const Call call("cudaHostUnregister");
  return unpin(memory);
}

cudaError_t cudaMemGetInfo(size_t* left, size_t* total) {
  const Call call("cudaMemGetInfo");
  *left = free_memory();
  *total = settings().memory;
  return cudaSuccess;
}

// On the default stream, and late.
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  const Call call("cudaMemset", bytes);
  SOFTWARE_GPU_UNLESS_FAILED();
  if (device_bytes_from(memory) < bytes) return remember(cudaErrorInvalidValue);
  give(legacy_stream(), "cudaMemset", [=] {
    std::memset(memory, value, bytes);
    return true;
  });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const Call call("cudaStreamCreateWithFlags");
  SOFTWARE_GPU_UNLESS_FAILED();
  if (flags != cudaStreamNonBlocking) find_fault("a stream that waits for the default stream: not modelled");
  return create_stream(stream);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Call call("cudaStreamDestroy");
  return destroy_stream(stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  count("cudaStreamSynchronize");
  return wait_for_stream(stream);
}

cudaError_t cudaDeviceSynchronize() {
  count("cudaDeviceSynchronize");
  return wait_for_all();
}

// A copy from pageable memory is made of what is there when it is called; one to pageable memory lasts until it is
// done.
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const bool is_up = kind == cudaMemcpyHostToDevice;
  const char* const name = is_up ? "cudaMemcpyAsync.to_device" : "cudaMemcpyAsync.to_host";
  {
    const Call call(name, bytes);
    SOFTWARE_GPU_UNLESS_FAILED();
    if (const cudaError_t wrong = check_stream(stream)) return wrong;
    const void* const on_device = is_up ? to : from;
    const void* const on_host = is_up ? from : to;
    const bool is_known = is_up || kind == cudaMemcpyDeviceToHost;
    if (!is_known || device_bytes_from(on_device) < bytes || on_host == nullptr || device_bytes_from(on_host) != 0) {
      return remember(cudaErrorInvalidValue);
    }
    const bool is_pageable = !is_pinned(on_host, bytes);
    if (is_pageable) count("cudaMemcpyAsync.pageable", bytes);
    if (is_pageable && is_up) {
      const auto* const begin = static_cast<const char*>(from);
      give(stream, name, [=, staged = std::make_shared<std::vector<char>>(begin, begin + bytes)] {
        std::memcpy(to, staged->data(), bytes);
        return true;
      });
      return cudaSuccess;
    }
    if (!is_up && !is_pageable) spoil(to, bytes);  // nobody may count on it before the copy is done
    give(stream, name, [=] {
      std::memcpy(to, from, bytes);
      return true;
    });
    if (!is_pageable) return cudaSuccess;
  }
  return wait_for_stream(stream);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  const Call call("cudaLaunchHostFunc");
  if (const cudaError_t wrong = check_stream(stream)) return wrong;
  give_host_function(stream, [=] { function(data); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  const Call call("cudaEventCreateWithFlags");
  SOFTWARE_GPU_UNLESS_FAILED();
  return create_event(event);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Call call("cudaEventDestroy");
  return destroy_event(event);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const Call call("cudaEventRecord");
  SOFTWARE_GPU_UNLESS_FAILED();
  return record_event(event, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  const Call call("cudaStreamWaitEvent");
  SOFTWARE_GPU_UNLESS_FAILED();
  return wait_for_event(stream, event);
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Call call("cudaEventQuery");
  SOFTWARE_GPU_UNLESS_FAILED();
  return query_event(event);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t first, cudaEvent_t second) {
  const Call call("cudaEventElapsedTime");
  return time_between(milliseconds, first, second);
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
