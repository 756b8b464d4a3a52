// Batch normalization on the CPU. It is bound by memory: forward reads x twice and writes y once, backward reads x and
// dy twice and writes dx once, and relu costs no pass of its own. Contracts as in ComputeBackend.
#pragma once

#include "worker/backend/compute_backend.h"

namespace syncopate::worker {

void batch_norm_forward(const BatchNormShape& shape, In x, In scale, In shift, const BatchMoments& batch,
                        const RunningMoments& running, In residual, Out y);
void batch_norm_backward(const BatchNormShape& shape, In x, In scale, In shift, const BatchMoments& batch, In y, Out dy,
                         Out dscale, Out dshift, Out dx);
void batch_norm_inference(const BatchNormShape& shape, In x, In scale, In shift, const RunningMoments& running,
                          In residual, Out y);

}  // namespace syncopate::worker
