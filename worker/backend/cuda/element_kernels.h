// Kernels on elements, rows and columns, for work that is bound by memory. All sum in an order that depends only on the
// shape. Each function enqueues its work on `stream` and returns the result of its launch. The tensors of one call are
// of one type. Empty tensors cost nothing.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "worker/backend/compute_backend.h"
#include "worker/backend/cuda/fold_space.h"

namespace syncopate::worker {

// y = max(y, 0); NaN stays, so that it is noticed.
cudaError_t launch_relu_forward(Out y, cudaStream_t stream);
// dy = 0 where y is 0.
cudaError_t launch_relu_backward(In y, Out dy, cudaStream_t stream);

// y += x.
cudaError_t launch_add(In x, Out y, cudaStream_t stream);

// y(rows, columns) += bias(columns), and then max(y, 0) if `relu`.
cudaError_t launch_add_bias(Out y, In bias, std::size_t rows, int columns, bool relu, cudaStream_t stream);

// db = the column sums of dy(rows, columns), which becomes 0 where y is, unless y is empty.
cudaError_t launch_bias_gradient(In y, Out dy, std::size_t rows, int columns, Out db, const FoldSpace& space,
                                 cudaStream_t stream);

// sums(columns) of matrix(rows, columns).
cudaError_t launch_column_sums(In matrix, std::size_t rows, int columns, Out sums, const FoldSpace& space,
                               cudaStream_t stream);

}  // namespace syncopate::worker
