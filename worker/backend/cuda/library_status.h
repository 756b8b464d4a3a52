// Converts the results of CUDA's libraries to a Status that names the call. For CUDA itself see
// common/device/cuda/cuda_status.h.
#pragma once

#include <cublasLt.h>
#include <cudnn.h>

#include "common/status.h"

namespace syncopate::worker {

// Returns "cudnnConvolutionForward: CUDNN_STATUS_NOT_SUPPORTED"; ok for success. `call` names the call that returned
// `result`.
Status library_status(cublasStatus_t result, const char* call);
Status library_status(cudnnStatus_t result, const char* call);

}  // namespace syncopate::worker
