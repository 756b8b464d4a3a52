// Stands in for NVIDIA's cuda_runtime.h where the host's compiler compiles a .cu as C++, whose launches launches.py has
// rewritten. What the device has beside C++: the index of a thread, shared memory, barriers, exchange within a warp.
#pragma once

#include <cuda_runtime_api.h>
#include <vector_functions.h>
#include <vector_types.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <tuple>

#include "tests/software_gpu/accesses.h"
#include "tests/software_gpu/grid.h"

#undef __shared__
#undef __launch_bounds__
#define __shared__ static  // in a section of its own: see shared_memory.ld
#define __launch_bounds__(...)

#define __syncthreads() software_gpu::meet_block(__LINE__)
#define __syncwarp(...) software_gpu::exchange_in_warp(0, 0, __LINE__)
#define __shfl_xor_sync(mask, value, distance) software_gpu::shuffle_xor(mask, value, distance, __LINE__)

// Where the linker has put the shared memory of this program's kernels.
extern "C" char __start_software_gpu_shared[] __attribute__((weak));
extern "C" char __stop_software_gpu_shared[] __attribute__((weak));

namespace software_gpu {

[[maybe_unused]] static const bool kHasSharedMemory = [] {
  register_shared(__start_software_gpu_shared, __stop_software_gpu_shared);
  return true;
}();

#ifdef SOFTWARE_GPU_FLUSHES_DENORMALS
inline constexpr bool kFlushesDenormals = true;
#else
inline constexpr bool kFlushesDenormals = false;
#endif

// Takes a launch's arguments, converted to the kernel's parameters when it is launched.
template <typename... Parameters>
struct Launcher {
  std::string name;
  void (*kernel)(Parameters...);
  dim3 grid, block;
  cudaStream_t stream;

  template <typename... Arguments>
  cudaError_t operator()(Arguments&&... arguments) const {
    std::tuple<Parameters...> copies(static_cast<Parameters>(arguments)...);
    return launch({.name = name,
                   .grid = grid,
                   .block = block,
                   .flushes_denormals = kFlushesDenormals,
                   .body = [kernel = kernel, copies] { std::apply(kernel, copies); }},
                  stream);
  }
};

template <typename... Parameters>
Launcher<Parameters...> launcher(const char* name, const char* file, int line, void (*kernel)(Parameters...), dim3 grid,
                                 dim3 block, std::size_t /*shared*/ = 0, cudaStream_t stream = nullptr) {
  return {std::string(file) + ":" + std::to_string(line) + ": " + name, kernel, grid, block, stream};
}

template <typename T>
T shuffle_xor(unsigned mask, T value, unsigned distance, int line) {
  static_assert(sizeof(T) == sizeof(unsigned));
  unsigned bits = mask;  // of all lanes: others are not modelled
  std::memcpy(&bits, &value, sizeof(bits));
  bits = exchange_in_warp(bits, static_cast<int>(distance), line);
  std::memcpy(&value, &bits, sizeof(bits));
  return value;
}

}  // namespace software_gpu

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  return software_gpu::launcher("a kernel", __FILE__, __LINE__, kernel, config->gridDim, config->blockDim,
                                config->dynamicSmemBytes, config->stream)(arguments...);
}

// Blocks run one after the other, so that all memory is always seen alike.
inline void __threadfence() {}
inline unsigned atomicInc(unsigned* address, unsigned most) { return software_gpu::increment(address, most); }
