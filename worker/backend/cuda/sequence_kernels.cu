#include "common/device/cuda/element_types.h"
#include "worker/backend/cuda/column_fold.h"
#include "worker/backend/cuda/kernel_grid.h"
#include "worker/backend/cuda/sequence_kernels.h"
#include "worker/backend/cuda/warp.h"

namespace syncopate::worker {
namespace {

constexpr unsigned kRowsABlock = 4;  // one warp a row

template <typename T>
__global__ void embedding_forward(EmbeddingShape s, const int* __restrict__ ids, const T* __restrict__ tokens,
                                  const T* __restrict__ positions, T* __restrict__ y) {
  const std::size_t width = s.width, count = static_cast<std::size_t>(s.batch) * s.context * width;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const std::size_t row = i / width, column = i % width;
    y[i] = from_float<T>(to_float(tokens[ids[row] * width + column]) +
                         to_float(positions[(row % s.context) * width + column]));
  }
}

// The rows of a batch are sorted in parts of so many: their tokens, and among equal ones their places.
constexpr unsigned kSortedRows = 1024;
using SortKey = unsigned long long;  // token · kSortedRows + place in the part
constexpr SortKey kNoRow = ~SortKey{0};
constexpr unsigned kSumRows = 16;  // a block's threads by its columns

// Block: a part of the rows, with a thread for each pair (Batcher 1968, "Sorting networks and their applications": the
// bitonic sorter).
__global__ void sort_tokens(const int* __restrict__ ids, std::size_t rows, SortKey* __restrict__ sorted) {
  __shared__ SortKey keys[kSortedRows];
  const std::size_t begin = static_cast<std::size_t>(blockIdx.x) * kSortedRows;
  for (unsigned i = threadIdx.x; i < kSortedRows; i += blockDim.x) {
    keys[i] = begin + i < rows ? static_cast<SortKey>(ids[begin + i]) * kSortedRows + i : kNoRow;
  }
  for (unsigned size = 2; size <= kSortedRows; size *= 2) {
    for (unsigned distance = size / 2; distance > 0; distance /= 2) {
      __syncthreads();
      const unsigned low = 2 * distance * (threadIdx.x / distance) + threadIdx.x % distance, high = low + distance;
      const bool ascends = (low & size) == 0;
      const SortKey first = keys[low], second = keys[high];
      if ((first > second) == ascends) {
        keys[low] = second;
        keys[high] = first;
      }
    }
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < kSortedRows; i += blockDim.x) sorted[begin + i] = keys[i];
}

// Returns the number of a part's keys that are smaller.
__device__ unsigned keys_below(const SortKey* __restrict__ part, SortKey key) {
  unsigned below = 0;
  for (unsigned step = kSortedRows / 2; step > 0; step /= 2) {
    if (part[below + step - 1] < key) below += step;
  }
  return below + (part[below] < key ? 1 : 0);
}

// Block (v, c) has token v and some columns. It finds the token's rows in all parts at once; then threads of a column
// take turns at the rows.
template <typename T>
__global__ void embedding_backward(EmbeddingShape s, const SortKey* __restrict__ sorted, unsigned parts,
                                   const T* __restrict__ dy, T* __restrict__ dtokens) {
  __shared__ unsigned first[kBlockColumns * kSumRows], end[kBlockColumns * kSumRows];
  __shared__ float sums[kSumRows][kBlockColumns];
  const unsigned thread = threadIdx.y * kBlockColumns + threadIdx.x, threads = kBlockColumns * kSumRows;
  const SortKey key = static_cast<SortKey>(blockIdx.x) * kSortedRows;
  const int column = static_cast<int>(blockIdx.y * kBlockColumns + threadIdx.x);
  const std::size_t width = s.width;
  float sum = 0;
  for (unsigned begin = 0; begin < parts; begin += threads) {
    const unsigned found = parts - begin < threads ? parts - begin : threads;
    if (thread < found) {
      const SortKey* const part = sorted + static_cast<std::size_t>(begin + thread) * kSortedRows;
      first[thread] = keys_below(part, key);
      end[thread] = keys_below(part, key + kSortedRows);
    }
    __syncthreads();
    for (unsigned i = 0; column < s.width && i < found; ++i) {
      const std::size_t of_part = static_cast<std::size_t>(begin + i) * kSortedRows;
      each_row<T>(
          first[i] + threadIdx.y, end[i], kSumRows,
          [&](std::size_t at) { return to_float(dy[(of_part + sorted[of_part + at] % kSortedRows) * width + column]); },
          [&](std::size_t, float value) { sum += value; });
    }
    __syncthreads();
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= s.width) return;
  for (unsigned i = 1; i < kSumRows; ++i) sum += sums[i][threadIdx.x];
  T& dtoken = dtokens[blockIdx.x * width + column];
  dtoken = from_float<T>(to_float(dtoken) + sum);
}

template <typename T>
__global__ void layer_norm_forward(LayerNormShape s, const T* __restrict__ x, const T* __restrict__ gamma,
                                   const T* __restrict__ beta, T* __restrict__ y, float* __restrict__ moments) {
  const std::size_t row = static_cast<std::size_t>(blockIdx.x) * kRowsABlock + threadIdx.y;
  if (row >= static_cast<std::size_t>(s.rows)) return;  // a whole warp
  const int lane = static_cast<int>(threadIdx.x);
  const T* const from = x + row * s.width;
  const float count = static_cast<float>(s.width);

  float sum = 0;
  for (int c = lane; c < s.width; c += kWarp) sum += to_float(from[c]);
  const float mean = warp_sum(sum) / count;
  float squares = 0;
  for (int c = lane; c < s.width; c += kWarp) {
    const float distance = to_float(from[c]) - mean;
    squares += distance * distance;
  }
  const float scale = 1.0f / sqrtf(warp_sum(squares) / count + kLayerNormEpsilon);

  T* const to = y + row * s.width;
  for (int c = lane; c < s.width; c += kWarp) {
    to[c] = from_float<T>((to_float(from[c]) - mean) * scale * to_float(gamma[c]) + to_float(beta[c]));
  }
  if (lane == 0) {
    moments[2 * row] = mean;
    moments[2 * row + 1] = scale;
  }
}

template <typename T>
__global__ void layer_norm_input_gradient(LayerNormShape s, const T* __restrict__ x, const T* __restrict__ gamma,
                                          const float* __restrict__ moments, const T* __restrict__ dy,
                                          const T* __restrict__ residual, T* __restrict__ dx) {
  const std::size_t row = static_cast<std::size_t>(blockIdx.x) * kRowsABlock + threadIdx.y;
  if (row >= static_cast<std::size_t>(s.rows)) return;  // a whole warp
  const int lane = static_cast<int>(threadIdx.x);
  const T* const from = x + row * s.width;
  const T* const gradient = dy + row * s.width;
  const float mean = moments[2 * row], scale = moments[2 * row + 1];
  const float count = static_cast<float>(s.width);

  float sum = 0, products = 0;
  for (int c = lane; c < s.width; c += kWarp) {
    const float value = to_float(gradient[c]) * to_float(gamma[c]);
    sum += value;
    products += value * ((to_float(from[c]) - mean) * scale);
  }
  sum = warp_sum(sum) / count;
  products = warp_sum(products) / count;
  T* const to = dx + row * s.width;
  for (int c = lane; c < s.width; c += kWarp) {
    const float past = residual == nullptr ? 0.0f : to_float(residual[row * s.width + c]);
    const float value = to_float(gradient[c]) * to_float(gamma[c]);
    to[c] = from_float<T>(scale * (value - sum - (to_float(from[c]) - mean) * scale * products) + past);
  }
}

// An element of the input, the gradient of its output, and the moments of its row.
struct NormedElement {
  float x, dy, mean, scale;
};

template <typename T>
__global__ void layer_norm_parameter_gradients(ColumnFold fold, int width, const T* __restrict__ x,
                                               const float* __restrict__ moments, const T* __restrict__ dy,
                                               T* __restrict__ dgamma, T* __restrict__ dbeta) {
  __shared__ ColumnFold::Shared<SumPair> shared;
  fold.run<SumPair>(
      shared,
      [&](int column, std::size_t first, std::size_t end, std::size_t step) {
        SumPair sums = SumPair::none();
        each_row<T>(
            first, end, step,
            [&](std::size_t row) {
              const std::size_t i = row * width + column;
              return NormedElement{to_float(x[i]), to_float(dy[i]), moments[2 * row], moments[2 * row + 1]};
            },
            [&](std::size_t, const NormedElement& at) {
              sums.first += at.dy * ((at.x - at.mean) * at.scale);
              sums.second += at.dy;
            });
        return sums;
      },
      [&](int column, const SumPair& sums) {
        dgamma[column] = from_float<T>(sums.first);
        dbeta[column] = from_float<T>(sums.second);
      });
}

// x/2 · (1 + tanh(u)) and its slope, with u = kScale · (x + kCubic x³).
constexpr float kScale = 0.7978845608028654f;  // sqrt(2/pi)
constexpr float kCubic = 0.044715f;

__device__ float tanh_of_gelu(float x) { return tanhf(kScale * (x + kCubic * x * x * x)); }

template <typename T>
__global__ void gelu_forward(const T* __restrict__ x, T* __restrict__ y, std::size_t count) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const float value = to_float(x[i]);
    y[i] = from_float<T>(0.5f * value * (1.0f + tanh_of_gelu(value)));
  }
}

template <typename T>
__global__ void gelu_backward(const T* __restrict__ x, const T* __restrict__ dy, T* __restrict__ dx,
                              std::size_t count) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const float value = to_float(x[i]), tanh = tanh_of_gelu(value);
    const float slope = kScale * (1.0f + 3.0f * kCubic * value * value);
    dx[i] = from_float<T>(to_float(dy[i]) * (0.5f * (1.0f + tanh) + 0.5f * value * (1.0f - tanh * tanh) * slope));
  }
}

unsigned row_blocks(int rows) { return (static_cast<unsigned>(rows) + kRowsABlock - 1) / kRowsABlock; }

}  // namespace

cudaError_t launch_embedding_forward(const EmbeddingShape& shape, const int* ids, In tokens, In positions, Out y,
                                     cudaStream_t stream) {
  return with_element(y.type(), [&]<typename T>(T) {
    embedding_forward<T><<<blocks_for(y.size(), kThreads), kThreads, 0, stream>>>(
        shape, ids, elements<T>(tokens), elements<T>(positions), elements<T>(y));
    return cudaGetLastError();
  });
}

std::size_t embedding_workspace(const EmbeddingShape& shape) {
  return ceil_divide(static_cast<std::size_t>(shape.rows()), kSortedRows) * kSortedRows * sizeof(SortKey);
}

cudaError_t launch_embedding_backward(const EmbeddingShape& shape, const int* ids, In dy, Out dtokens,
                                      std::byte* workspace, cudaStream_t stream) {
  const auto rows = static_cast<std::size_t>(shape.rows());
  const auto parts = static_cast<unsigned>(ceil_divide(rows, kSortedRows));
  auto* const sorted = reinterpret_cast<SortKey*>(workspace);
  sort_tokens<<<parts, kSortedRows / 2, 0, stream>>>(ids, rows, sorted);
  const dim3 grid(static_cast<unsigned>(shape.vocabulary), column_blocks(shape.width));
  return with_element(dy.type(), [&]<typename T>(T) {
    embedding_backward<T><<<grid, dim3(kBlockColumns, kSumRows), 0, stream>>>(shape, sorted, parts, elements<T>(dy),
                                                                              elements<T>(dtokens));
    return cudaGetLastError();
  });
}

cudaError_t launch_layer_norm_forward(const LayerNormShape& shape, In x, In gamma, In beta, Out y, float* moments,
                                      cudaStream_t stream) {
  return with_element(x.type(), [&]<typename T>(T) {
    layer_norm_forward<T><<<row_blocks(shape.rows), dim3(kWarp, kRowsABlock), 0, stream>>>(
        shape, elements<T>(x), elements<T>(gamma), elements<T>(beta), elements<T>(y), moments);
    return cudaGetLastError();
  });
}

cudaError_t launch_layer_norm_backward(const LayerNormShape& shape, In x, In gamma, const float* moments, In dy,
                                       In residual, Out dgamma, Out dbeta, Out dx, const FoldSpace& space,
                                       cudaStream_t stream) {
  const ColumnFold fold(static_cast<std::size_t>(shape.rows), shape.width, space);
  return with_element(x.type(), [&]<typename T>(T) {
    layer_norm_parameter_gradients<T><<<fold.grid(), fold.block(), 0, stream>>>(
        fold, shape.width, elements<T>(x), moments, elements<T>(dy), elements<T>(dgamma), elements<T>(dbeta));
    const cudaError_t first = cudaGetLastError();
    if (first != cudaSuccess || dx.empty()) return first;
    layer_norm_input_gradient<T><<<row_blocks(shape.rows), dim3(kWarp, kRowsABlock), 0, stream>>>(
        shape, elements<T>(x), elements<T>(gamma), moments, elements<T>(dy),
        residual.empty() ? nullptr : elements<T>(residual), elements<T>(dx));
    return cudaGetLastError();
  });
}

cudaError_t launch_gelu_forward(In x, Out y, cudaStream_t stream) {
  if (x.empty()) return cudaSuccess;
  return with_element(x.type(), [&]<typename T>(T) {
    gelu_forward<T><<<blocks_for(x.size(), kThreads), kThreads, 0, stream>>>(elements<T>(x), elements<T>(y), x.size());
    return cudaGetLastError();
  });
}

cudaError_t launch_gelu_backward(In x, In dy, Out dx, cudaStream_t stream) {
  if (x.empty()) return cudaSuccess;
  return with_element(x.type(), [&]<typename T>(T) {
    gelu_backward<T><<<blocks_for(x.size(), kThreads), kThreads, 0, stream>>>(elements<T>(x), elements<T>(dy),
                                                                              elements<T>(dx), x.size());
    return cudaGetLastError();
  });
}

}  // namespace syncopate::worker
