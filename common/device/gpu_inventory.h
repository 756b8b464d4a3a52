// Finds the GPUs of this machine by asking NVIDIA's driver, which is loaded at the call, so that it also works in a
// program that is built without a CUDA toolkit.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/status.h"

namespace syncopate {

struct Gpu {
  std::string name;  // "NVIDIA H200"
  std::size_t memory_bytes = 0;
  // The compute capability: 9 and 0 for "9.0".
  int major = 0;
  int minor = 0;
};

// "NVIDIA H200 (GPU 0, 139 GiB)", of the GPU at `index` of those that find_gpus() returns.
std::string describe(const Gpu& gpu, int index);

// Returns at least one GPU, in the driver's order, which is also CUDA's; only those that CUDA_VISIBLE_DEVICES leaves,
// if it is set. Fails with not found, saying what was found instead, if there is none. Creates no context, so nothing
// is allocated on a GPU.
//
// The driver stays loaded in this process; a child process that is to use a GPU must exec. Any thread.
Result<std::vector<Gpu>> find_gpus();

}  // namespace syncopate
