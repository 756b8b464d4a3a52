#include <algorithm>

#include "worker/backend/cuda/element_kernels.h"
#include "worker/backend/cuda/kernel_grid.h"

namespace syncopate::worker {
namespace {

__device__ float positive(float value) { return value < 0.0f ? 0.0f : value; }

__global__ void relu_forward(float* y, std::size_t count) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    y[i] = positive(y[i]);
  }
}

__global__ void relu_backward(const float* __restrict__ y, float* __restrict__ dy, std::size_t count) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    if (y[i] == 0.0f) dy[i] = 0.0f;
  }
}

__global__ void add(const float* __restrict__ x, float* __restrict__ y, std::size_t count) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    y[i] += x[i];
  }
}

// A thread has one column, and every so many-th row.
__global__ void add_bias(float* __restrict__ y, const float* __restrict__ bias, std::size_t rows, int columns,
                         bool relu) {
  const int column = static_cast<int>(blockIdx.x * kBlockColumns + threadIdx.x);
  if (column >= columns) return;
  const float addend = bias[column];
  const std::size_t stride = static_cast<std::size_t>(gridDim.y) * kBlockRows;
  for (std::size_t row = static_cast<std::size_t>(blockIdx.y) * kBlockRows + threadIdx.y; row < rows; row += stride) {
    float& element = y[row * columns + column];
    const float sum = element + addend;
    element = relu ? positive(sum) : sum;
  }
}

// Block (c, p) sums part p, which is `part_rows` rows, of 32 columns into sums(parts, columns).
__global__ void column_sums(const float* __restrict__ matrix, std::size_t rows, int columns, std::size_t part_rows,
                            float* __restrict__ sums) {
  __shared__ float of_threads[kBlockRows][kBlockColumns];
  const int column = static_cast<int>(blockIdx.x * kBlockColumns + threadIdx.x);
  const std::size_t begin = blockIdx.y * part_rows;
  const std::size_t end = begin + part_rows < rows ? begin + part_rows : rows;
  float sum = 0;
  if (column < columns) {
    for (std::size_t row = begin + threadIdx.y; row < end; row += kBlockRows) sum += matrix[row * columns + column];
  }
  of_threads[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (unsigned i = 1; i < kBlockRows; ++i) sum += of_threads[i][threadIdx.x];
  sums[static_cast<std::size_t>(blockIdx.y) * columns + column] = sum;
}

}  // namespace

cudaError_t launch_relu_forward(float* y, std::size_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  relu_forward<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(y, count);
  return cudaGetLastError();
}

cudaError_t launch_relu_backward(const float* y, float* dy, std::size_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  relu_backward<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(y, dy, count);
  return cudaGetLastError();
}

cudaError_t launch_add(const float* x, float* y, std::size_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  add<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(x, y, count);
  return cudaGetLastError();
}

cudaError_t launch_add_bias(float* y, const float* bias, std::size_t rows, int columns, bool relu,
                            cudaStream_t stream) {
  if (rows == 0 || columns == 0) return cudaSuccess;
  const dim3 grid(column_blocks(columns), blocks_for(rows, kBlockRows));
  add_bias<<<grid, dim3(kBlockColumns, kBlockRows), 0, stream>>>(y, bias, rows, columns, relu);
  return cudaGetLastError();
}

cudaError_t launch_column_sums(const float* matrix, std::size_t rows, int columns, float* sums,
                               std::span<std::byte> workspace, cudaStream_t stream) {
  if (columns == 0) return cudaSuccess;
  const dim3 block(kBlockColumns, kBlockRows);
  const std::size_t room = workspace.size() / sizeof(float) / static_cast<std::size_t>(columns);
  std::size_t parts = std::min({ceil_divide(rows, kLeastRows), kMostParts, room});
  if (parts <= 1) {
    column_sums<<<dim3(column_blocks(columns), 1), block, 0, stream>>>(matrix, rows, columns, rows, sums);
    return cudaGetLastError();
  }
  const std::size_t part_rows = ceil_divide(rows, parts);
  parts = ceil_divide(rows, part_rows);
  float* const of_parts = reinterpret_cast<float*>(workspace.data());
  column_sums<<<dim3(column_blocks(columns), static_cast<unsigned>(parts)), block, 0, stream>>>(matrix, rows, columns,
                                                                                                part_rows, of_parts);
  const cudaError_t first = cudaGetLastError();
  if (first != cudaSuccess) return first;
  column_sums<<<dim3(column_blocks(columns), 1), block, 0, stream>>>(of_parts, parts, columns, parts, sums);
  return cudaGetLastError();
}

}  // namespace syncopate::worker
