// The oracle's operations on sequences: each follows its definition, and sums in double precision. Contracts as in
// ComputeBackend.
#pragma once

#include "worker/backend/compute_backend.h"

namespace syncopate::worker::reference {

void embedding_forward(const EmbeddingShape& s, std::span<const int> ids, In tokens, In positions, Out y);
void embedding_backward(const EmbeddingShape& s, std::span<const int> ids, In dy, Out dtokens, Out dpositions);

void layer_norm_forward(const LayerNormShape& s, In x, In gamma, In beta, Out y, Out moments);
void layer_norm_backward(const LayerNormShape& s, In x, In gamma, In moments, In dy, Out dgamma, Out dbeta, Out dx);

void gelu_forward(In x, Out y);
void gelu_backward(In x, In dy, Out dx);

void attention_forward(const AttentionShape& s, In qkv, Out y, Out probabilities);
void attention_backward(const AttentionShape& s, In qkv, In dy, Out probabilities, Out dqkv);

}  // namespace syncopate::worker::reference
