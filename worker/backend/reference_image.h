// The oracle's batch norm, mean pooling and subsampling: each follows its definition, and sums in double precision.
// Contracts as in ComputeBackend.
#pragma once

#include "worker/backend/compute_backend.h"

namespace syncopate::worker::reference {

void batch_norm_forward(const BatchNormShape& s, In x, In scale, In shift, const BatchMoments& batch,
                        const RunningMoments& running, Out y);
void batch_norm_backward(const BatchNormShape& s, In x, In scale, In shift, const BatchMoments& batch, In dy,
                         Out dscale, Out dshift, Out dx);
void batch_norm_inference(const BatchNormShape& s, In x, In scale, In shift, const RunningMoments& running, Out y);

void mean_pool_forward(const MeanPoolShape& s, In x, Out y);
void mean_pool_backward(const MeanPoolShape& s, In dy, Out dx);

void subsample_forward(const SubsampleShape& s, In x, Out y);
void subsample_backward(const SubsampleShape& s, In dy, Out dx);

}  // namespace syncopate::worker::reference
