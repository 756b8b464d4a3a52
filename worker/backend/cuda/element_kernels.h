// Kernels on elements, rows and columns: what is bound by memory. All sum in an order that depends on the shape alone.
// Each gives its work to `stream` and returns what its launch returned. Empty tensors are no work.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

namespace syncopate::worker {

// y = max(y, 0); NaN stays, so that it is seen.
cudaError_t launch_relu_forward(float* y, std::size_t count, cudaStream_t stream);
// dy = 0 where y is 0.
cudaError_t launch_relu_backward(const float* y, float* dy, std::size_t count, cudaStream_t stream);

// y += x.
cudaError_t launch_add(const float* x, float* y, std::size_t count, cudaStream_t stream);

// y(rows, columns) += bias(columns), and then max(y, 0) if `relu`.
cudaError_t launch_add_bias(float* y, const float* bias, std::size_t rows, int columns, bool relu, cudaStream_t stream);

// sums(columns) of matrix(rows, columns). `workspace` is device memory for sums of parts; the less, the fewer parts.
cudaError_t launch_column_sums(const float* matrix, std::size_t rows, int columns, float* sums,
                               std::span<std::byte> workspace, cudaStream_t stream);

}  // namespace syncopate::worker
