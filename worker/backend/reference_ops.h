// The operations of the oracle that have files of their own: those on images (reference_image.cc) and on sequences
// (reference_sequence.cc). Each follows its definition, and sums in double precision. Contracts as in ComputeBackend.
#pragma once

#include "worker/backend/compute_backend.h"

namespace syncopate::worker::reference {

void batch_norm_forward(const BatchNormShape& s, In x, In scale, In shift, const BatchMoments& batch,
                        const RunningMoments& running, In residual, Out y);
void batch_norm_backward(const BatchNormShape& s, In x, In scale, In shift, const BatchMoments& batch, In y, Out dy,
                         Out dscale, Out dshift, Out dx);
void batch_norm_inference(const BatchNormShape& s, In x, In scale, In shift, const RunningMoments& running, In residual,
                          Out y);

void mean_pool_forward(const MeanPoolShape& s, In x, Out y);
void mean_pool_backward(const MeanPoolShape& s, In dy, Out dx);

void subsample_forward(const SubsampleShape& s, In x, Out y);
void subsample_backward(const SubsampleShape& s, In dy, Out dx);

void embedding_forward(const EmbeddingShape& s, std::span<const int> ids, In tokens, In positions, Out y);
void embedding_backward(const EmbeddingShape& s, std::span<const int> ids, In dy, Out dtokens, Out dpositions);

void layer_norm_forward(const LayerNormShape& s, In x, In gamma, In beta, Out y, Floats moments);
void layer_norm_backward(const LayerNormShape& s, In x, In gamma, ConstFloats moments, In dy, In residual, Out dgamma,
                         Out dbeta, Out dx);

void gelu_forward(In x, Out y);
void gelu_backward(In x, In dy, Out dx);

void attention_forward(const AttentionShape& s, In qkv, Out y, Floats probabilities);
void attention_backward(const AttentionShape& s, In qkv, In dy, Floats probabilities, Out dqkv);

}  // namespace syncopate::worker::reference
