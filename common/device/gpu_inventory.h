// What GPUs this machine has: asked of NVIDIA's driver, which is loaded when this is called, so that a program which
// is built without a CUDA toolkit can tell.
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

// At least one, in the driver's order, which is CUDA's own: of those that CUDA_VISIBLE_DEVICES leaves, if it is set.
// Not found, with what was found instead, where there is none. Makes no context: nothing is held on a GPU.
//
// The driver stays loaded in this process; a child that is to use a GPU must exec. Any thread.
Result<std::vector<Gpu>> find_gpus();

}  // namespace syncopate
