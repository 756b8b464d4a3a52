#include "worker/backend/cuda/column_fold.h"
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

// A thread has one column.
__global__ void add_bias(float* __restrict__ y, const float* __restrict__ bias, std::size_t rows, int columns,
                         bool relu) {
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (column >= columns) return;
  const float addend = bias[column];
  each_row(
      static_cast<std::size_t>(blockIdx.y) * blockDim.y + threadIdx.y, rows,
      static_cast<std::size_t>(gridDim.y) * blockDim.y, [&](std::size_t row) { return y[row * columns + column]; },
      [&](std::size_t row, float element) {
        const float sum = element + addend;
        y[row * columns + column] = relu ? positive(sum) : sum;
      });
}

// An element of a relu's output, and its gradient.
struct OutputAndGradient {
  float y, dy;
};

__global__ void relu_bias_gradient(ColumnFold fold, const float* __restrict__ y, float* __restrict__ dy, int columns,
                                   float* __restrict__ db) {
  __shared__ ColumnFold::Shared<Sum> shared;
  fold.run<Sum>(
      shared,
      [&](int column, std::size_t first, std::size_t end, std::size_t step) {
        Sum sum = Sum::none();
        each_row(
            first, end, step,
            [&](std::size_t row) {
              return OutputAndGradient{y[row * columns + column], dy[row * columns + column]};
            },
            [&](std::size_t row, const OutputAndGradient& at) {
              if (at.y == 0.0f) {
                dy[row * columns + column] = 0.0f;
              } else {
                sum.value += at.dy;
              }
            });
        return sum;
      },
      [&](int column, const Sum& sum) { db[column] = sum.value; });
}

__global__ void column_sums(ColumnFold fold, const float* __restrict__ matrix, int columns, float* __restrict__ sums) {
  __shared__ ColumnFold::Shared<Sum> shared;
  fold.run<Sum>(
      shared,
      [&](int column, std::size_t first, std::size_t end, std::size_t step) {
        Sum sum = Sum::none();
        each_row(
            first, end, step, [&](std::size_t row) { return matrix[row * columns + column]; },
            [&](std::size_t, float value) { sum.value += value; });
        return sum;
      },
      [&](int column, const Sum& sum) { sums[column] = sum.value; });
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
  add_bias<<<matrix_grid(rows, columns), matrix_block(columns), 0, stream>>>(y, bias, rows, columns, relu);
  return cudaGetLastError();
}

cudaError_t launch_bias_gradient(const float* y, float* dy, std::size_t rows, int columns, float* db,
                                 const FoldSpace& space, cudaStream_t stream) {
  if (y == nullptr) return launch_column_sums(dy, rows, columns, db, space, stream);
  if (columns == 0) return cudaSuccess;
  const ColumnFold fold(rows, columns, space);
  relu_bias_gradient<<<fold.grid(), fold.block(), 0, stream>>>(fold, y, dy, columns, db);
  return cudaGetLastError();
}

cudaError_t launch_column_sums(const float* matrix, std::size_t rows, int columns, float* sums, const FoldSpace& space,
                               cudaStream_t stream) {
  if (columns == 0) return cudaSuccess;
  const ColumnFold fold(rows, columns, space);
  column_sums<<<fold.grid(), fold.block(), 0, stream>>>(fold, matrix, columns, sums);
  return cudaGetLastError();
}

}  // namespace syncopate::worker
