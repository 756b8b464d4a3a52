// What CUDA's libraries return, as a Status that names the call. CUDA's own: common/device/cuda/cuda_status.h.
#pragma once

#include <cublasLt.h>
#include <cudnn.h>

#include "common/status.h"

namespace syncopate::worker {

// "cudnnConvolutionForward: CUDNN_STATUS_NOT_SUPPORTED"; ok for success. `call` is what returned `result`.
Status library_status(cublasStatus_t result, const char* call);
Status library_status(cudnnStatus_t result, const char* call);

}  // namespace syncopate::worker
