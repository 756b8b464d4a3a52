#include "common/device/cuda/element_types.h"
#include "worker/backend/cuda/column_fold.h"
#include "worker/backend/cuda/element_kernels.h"
#include "worker/backend/cuda/kernel_grid.h"

namespace syncopate::worker {
namespace {

__device__ float positive(float value) { return value < 0.0f ? 0.0f : value; }

// Calls take(i, load(i)) for this thread's share of 0 .. count-1.
template <typename T, typename Load, typename Take>
__device__ void each_element(std::size_t count, Load load, Take take) {
  each_row<T>(static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x, count,
              static_cast<std::size_t>(gridDim.x) * blockDim.x, load, take);
}
template <typename T>
unsigned element_blocks(std::size_t count) {
  return blocks_for(count, std::size_t{kThreads} * kRowsAhead<T>);
}

template <typename T>
__global__ void relu_forward(T* y, std::size_t count) {
  each_element<T>(
      count, [&](std::size_t i) { return to_float(y[i]); },
      [&](std::size_t i, float value) { y[i] = from_float<T>(positive(value)); });
}

template <typename T>
__global__ void relu_backward(const T* __restrict__ y, T* __restrict__ dy, std::size_t count) {
  each_element<T>(
      count, [&](std::size_t i) { return to_float(y[i]); },
      [&](std::size_t i, float value) {
        if (value == 0.0f) dy[i] = from_float<T>(0.0f);
      });
}

template <typename T>
__global__ void add(const T* __restrict__ x, T* __restrict__ y, std::size_t count) {
  each_element<T>(
      count, [&](std::size_t i) { return to_float(y[i]) + to_float(x[i]); },
      [&](std::size_t i, float sum) { y[i] = from_float<T>(sum); });
}

// A thread has one column.
template <typename T>
__global__ void add_bias(T* __restrict__ y, const T* __restrict__ bias, std::size_t rows, int columns, bool relu) {
  const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (column >= columns) return;
  const float addend = to_float(bias[column]);
  each_row<T>(
      static_cast<std::size_t>(blockIdx.y) * blockDim.y + threadIdx.y, rows,
      static_cast<std::size_t>(gridDim.y) * blockDim.y,
      [&](std::size_t row) { return to_float(y[row * columns + column]); },
      [&](std::size_t row, float element) {
        const float sum = element + addend;
        y[row * columns + column] = from_float<T>(relu ? positive(sum) : sum);
      });
}

// An element of a relu's output, and its gradient.
struct OutputAndGradient {
  float y, dy;
};

template <typename T>
__global__ void relu_bias_gradient(ColumnFold fold, const T* __restrict__ y, T* __restrict__ dy, int columns,
                                   T* __restrict__ db) {
  __shared__ ColumnFold::Shared<Sum> shared;
  fold.run<Sum>(
      shared,
      [&](int column, std::size_t first, std::size_t end, std::size_t step) {
        Sum sum = Sum::none();
        each_row<T>(
            first, end, step,
            [&](std::size_t row) {
              return OutputAndGradient{to_float(y[row * columns + column]), to_float(dy[row * columns + column])};
            },
            [&](std::size_t row, const OutputAndGradient& at) {
              if (at.y == 0.0f) {
                dy[row * columns + column] = from_float<T>(0.0f);
              } else {
                sum.value += at.dy;
              }
            });
        return sum;
      },
      [&](int column, const Sum& sum) { db[column] = from_float<T>(sum.value); });
}

template <typename T>
__global__ void column_sums(ColumnFold fold, const T* __restrict__ matrix, int columns, T* __restrict__ sums) {
  __shared__ ColumnFold::Shared<Sum> shared;
  fold.run<Sum>(
      shared,
      [&](int column, std::size_t first, std::size_t end, std::size_t step) {
        Sum sum = Sum::none();
        each_row<T>(
            first, end, step, [&](std::size_t row) { return to_float(matrix[row * columns + column]); },
            [&](std::size_t, float value) { sum.value += value; });
        return sum;
      },
      [&](int column, const Sum& sum) { sums[column] = from_float<T>(sum.value); });
}

}  // namespace

cudaError_t launch_relu_forward(Out y, cudaStream_t stream) {
  if (y.empty()) return cudaSuccess;
  return with_element(y.type(), [&]<typename T>(T) {
    relu_forward<T><<<element_blocks<T>(y.size()), kThreads, 0, stream>>>(elements<T>(y), y.size());
    return cudaGetLastError();
  });
}

cudaError_t launch_relu_backward(In y, Out dy, cudaStream_t stream) {
  if (y.empty()) return cudaSuccess;
  return with_element(y.type(), [&]<typename T>(T) {
    relu_backward<T><<<element_blocks<T>(y.size()), kThreads, 0, stream>>>(elements<T>(y), elements<T>(dy), y.size());
    return cudaGetLastError();
  });
}

cudaError_t launch_add(In x, Out y, cudaStream_t stream) {
  if (x.empty()) return cudaSuccess;
  return with_element(x.type(), [&]<typename T>(T) {
    add<T><<<element_blocks<T>(x.size()), kThreads, 0, stream>>>(elements<T>(x), elements<T>(y), x.size());
    return cudaGetLastError();
  });
}

cudaError_t launch_add_bias(Out y, In bias, std::size_t rows, int columns, bool relu, cudaStream_t stream) {
  if (rows == 0 || columns == 0) return cudaSuccess;
  return with_element(y.type(), [&]<typename T>(T) {
    add_bias<T><<<matrix_grid<T>(rows, columns), matrix_block(columns), 0, stream>>>(elements<T>(y), elements<T>(bias),
                                                                                     rows, columns, relu);
    return cudaGetLastError();
  });
}

cudaError_t launch_bias_gradient(In y, Out dy, std::size_t rows, int columns, Out db, const FoldSpace& space,
                                 cudaStream_t stream) {
  if (y.empty()) return launch_column_sums(dy, rows, columns, db, space, stream);
  const ColumnFold fold(rows, columns, space);
  return with_element(dy.type(), [&]<typename T>(T) {
    relu_bias_gradient<T>
        <<<fold.grid(), fold.block(), 0, stream>>>(fold, elements<T>(y), elements<T>(dy), columns, elements<T>(db));
    return cudaGetLastError();
  });
}

cudaError_t launch_column_sums(In matrix, std::size_t rows, int columns, Out sums, const FoldSpace& space,
                               cudaStream_t stream) {
  if (columns == 0) return cudaSuccess;
  const ColumnFold fold(rows, columns, space);
  return with_element(matrix.type(), [&]<typename T>(T) {
    column_sums<T><<<fold.grid(), fold.block(), 0, stream>>>(fold, elements<T>(matrix), columns, elements<T>(sums));
    return cudaGetLastError();
  });
}

}  // namespace syncopate::worker
