// The operations on sequences on the CPU that are bound by memory rather than by matrix products: loops in a form that
// the compiler vectorises. Contracts as in ComputeBackend.
#pragma once

#include "worker/backend/compute_backend.h"

namespace syncopate::worker {

void embedding_forward(const EmbeddingShape& shape, std::span<const int> ids, In tokens, In positions, Out y);
void embedding_backward(const EmbeddingShape& shape, std::span<const int> ids, In dy, Out dtokens, Out dpositions);

void layer_norm_forward(const LayerNormShape& shape, In x, In gamma, In beta, Out y, Floats moments);
void layer_norm_backward(const LayerNormShape& shape, In x, In gamma, ConstFloats moments, In dy, In residual,
                         Out dgamma, Out dbeta, Out dx);

void gelu_forward(In x, Out y);
void gelu_backward(In x, In dy, Out dx);

// In place, over the rows of `scores` (context, context): replaces the first t + 1 elements of row t by their softmax,
// and the rest by 0.
void causal_softmax(int context, Out scores);
// In place: replaces dp by the gradient of the scores, and by 0 beyond the diagonal, where dp is not read.
void causal_softmax_backward(int context, In p, Out dp);

}  // namespace syncopate::worker
