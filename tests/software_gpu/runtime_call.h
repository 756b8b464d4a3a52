// What the calls of CUDA's runtime have in common.
#pragma once

#include <cstdint>
#include <mutex>

#include "tests/software_gpu/machine.h"

namespace software_gpu {

// For the duration of a call: counts it, and holds the machine. Finds a fault where a function of the host's, which a
// stream has called, calls the runtime.
class Call {
 public:
  explicit Call(const char* name, std::uint64_t bytes = 0);

 private:
  std::lock_guard<std::recursive_mutex> hold_;
};

}  // namespace software_gpu

#define SOFTWARE_GPU_UNLESS_FAILED() \
  if (software_gpu::sticky_error() != cudaSuccess) return software_gpu::remember(software_gpu::sticky_error())
