// What the calls of CUDA's runtime have in common.
#pragma once

#include <cstdint>
#include <mutex>

#include "tests/software_gpu/graphs.h"
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

// What a call may be refused for: the device has failed, or a capture is under way that forbids calls of its kind.
enum Refusals : unsigned { kNever = 0, kAfterFailure = 1, kInCapture = 2 };

struct Called {
  const char* name;
  std::uint64_t bytes = 0;
};

// Answers a call as `work` does, unless it is to be refused.
template <typename Work>
cudaError_t answer(const Called& called, unsigned refusals, const Work& work) {
  const Call call(called.name, called.bytes);
  if ((refusals & kAfterFailure) != 0 && sticky_error() != cudaSuccess) return remember(sticky_error());
  const cudaError_t unsafe = (refusals & kInCapture) != 0 ? check_unsafe_call() : cudaSuccess;
  return unsafe != cudaSuccess ? unsafe : work();
}

}  // namespace software_gpu
