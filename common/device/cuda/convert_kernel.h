// Converts between types of numbers on a device.
#pragma once

#include <cuda_runtime_api.h>

#include "common/tensor_span.h"

namespace syncopate {

// Enqueues y = x, rounded to y's type, which may be x's, on `stream`, which must be of the current GPU. Both have the
// same size and do not overlap. Returns the result of the launch.
cudaError_t launch_convert(ConstTensorSpan x, TensorSpan y, cudaStream_t stream);

}  // namespace syncopate
