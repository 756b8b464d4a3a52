// Operations on whole tensors that are no model's: conversion, and what a loss scale needs (loss_scale.h). Each
// enqueues one kernel on `stream`, which must be of the current GPU, and returns the result of the launch. All memory
// is the device's.
#pragma once

#include <cuda_runtime_api.h>

#include "common/device/loss_scale.h"
#include "common/tensor_span.h"

namespace syncopate {

// y = x, rounded to y's type. Both have the same size and do not overlap.
cudaError_t launch_convert(ConstTensorSpan x, TensorSpan y, cudaStream_t stream);

// Sets scale->overflowed unless all gradients are finite.
cudaError_t launch_look_for_overflow(ConstTensorSpan gradients, LossScale* scale, cudaStream_t stream);

// scale->end_step()
cudaError_t launch_end_scaled_step(LossScale* scale, cudaStream_t stream);

}  // namespace syncopate
