// The accelerator for NVIDIA's GPUs: CUDA, cuBLAS, cuDNN and NCCL.
#pragma once

#include "experiments/cluster/process/accelerator.h"

namespace syncopate::experiments {

// Returns the same object in each call.
const Accelerator& cuda_accelerator();

}  // namespace syncopate::experiments
