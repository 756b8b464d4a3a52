// The operations on the CPU that are bound by memory rather than by arithmetic: simple loops in a form that the
// compiler vectorises. Contracts as in ComputeBackend.
#pragma once

#include "worker/backend/compute_backend.h"

namespace syncopate::worker {

void relu_forward(Out y);
void relu_backward(In y, Out dy);

void bias_forward(const BiasShape& shape, In b, Out y);

void add(In x, Out y);

// sums[c] = sum over rows of matrix[row][c]; matrix is (rows, sums.size()).
void column_sums(In matrix, Out sums);

void max_pool_forward(const PoolShape& shape, In x, Out y, std::span<unsigned char> index);
void max_pool_backward(const PoolShape& shape, In dy, std::span<const unsigned char> index, Out dx);

void mean_pool_forward(const MeanPoolShape& shape, In x, Out y);
void mean_pool_backward(const MeanPoolShape& shape, In dy, Out dx);

void subsample_forward(const SubsampleShape& shape, In x, Out y);
void subsample_backward(const SubsampleShape& shape, In dy, Out dx);

LossAndCorrect softmax_cross_entropy(int batch, int classes, In logits, std::span<const int> labels, double weight,
                                     Out dlogits);

}  // namespace syncopate::worker
