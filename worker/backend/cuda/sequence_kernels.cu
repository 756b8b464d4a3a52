#include "worker/backend/cuda/column_fold.h"
#include "worker/backend/cuda/kernel_grid.h"
#include "worker/backend/cuda/sequence_kernels.h"
#include "worker/backend/cuda/warp.h"

namespace syncopate::worker {
namespace {

constexpr unsigned kRowsABlock = 4;  // one warp a row

__global__ void embedding_forward(EmbeddingShape s, const int* __restrict__ ids, const float* __restrict__ tokens,
                                  const float* __restrict__ positions, float* __restrict__ y) {
  const std::size_t width = s.width, count = static_cast<std::size_t>(s.batch) * s.context * width;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const std::size_t row = i / width, column = i % width;
    y[i] = tokens[ids[row] * width + column] + positions[(row % s.context) * width + column];
  }
}

// Block (v, c) has token v and some columns, and looks for the token's rows from the first to the last.
__global__ void embedding_backward(EmbeddingShape s, const int* __restrict__ ids, const float* __restrict__ dy,
                                   float* __restrict__ dtokens) {
  const int token = static_cast<int>(blockIdx.x);
  const int column = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x);
  if (column >= s.width) return;
  const std::size_t width = s.width, rows = static_cast<std::size_t>(s.batch) * s.context;
  float sum = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    if (ids[row] == token) sum += dy[row * width + column];
  }
  dtokens[token * width + column] += sum;
}

__global__ void layer_norm_forward(LayerNormShape s, const float* __restrict__ x, const float* __restrict__ gamma,
                                   const float* __restrict__ beta, float* __restrict__ y, float* __restrict__ moments) {
  const std::size_t row = static_cast<std::size_t>(blockIdx.x) * kRowsABlock + threadIdx.y;
  if (row >= static_cast<std::size_t>(s.rows)) return;  // a whole warp
  const int lane = static_cast<int>(threadIdx.x);
  const float* const from = x + row * s.width;
  const float count = static_cast<float>(s.width);

  float sum = 0;
  for (int c = lane; c < s.width; c += kWarp) sum += from[c];
  const float mean = warp_sum(sum) / count;
  float squares = 0;
  for (int c = lane; c < s.width; c += kWarp) squares += (from[c] - mean) * (from[c] - mean);
  const float scale = 1.0f / sqrtf(warp_sum(squares) / count + kLayerNormEpsilon);

  float* const to = y + row * s.width;
  for (int c = lane; c < s.width; c += kWarp) to[c] = (from[c] - mean) * scale * gamma[c] + beta[c];
  if (lane == 0) {
    moments[2 * row] = mean;
    moments[2 * row + 1] = scale;
  }
}

__global__ void layer_norm_input_gradient(LayerNormShape s, const float* __restrict__ x,
                                          const float* __restrict__ gamma, const float* __restrict__ moments,
                                          const float* __restrict__ dy, float* __restrict__ dx) {
  const std::size_t row = static_cast<std::size_t>(blockIdx.x) * kRowsABlock + threadIdx.y;
  if (row >= static_cast<std::size_t>(s.rows)) return;  // a whole warp
  const int lane = static_cast<int>(threadIdx.x);
  const float* const from = x + row * s.width;
  const float* const gradient = dy + row * s.width;
  const float mean = moments[2 * row], scale = moments[2 * row + 1];
  const float count = static_cast<float>(s.width);

  float sum = 0, products = 0;
  for (int c = lane; c < s.width; c += kWarp) {
    const float value = gradient[c] * gamma[c];
    sum += value;
    products += value * ((from[c] - mean) * scale);
  }
  sum = warp_sum(sum) / count;
  products = warp_sum(products) / count;
  float* const to = dx + row * s.width;
  for (int c = lane; c < s.width; c += kWarp) {
    to[c] = scale * (gradient[c] * gamma[c] - sum - (from[c] - mean) * scale * products);
  }
}

// An element of the input, the gradient of its output, and the moments of its row.
struct NormedElement {
  float x, dy, mean, scale;
};

__global__ void layer_norm_parameter_gradients(ColumnFold fold, int width, const float* __restrict__ x,
                                               const float* __restrict__ moments, const float* __restrict__ dy,
                                               float* __restrict__ dgamma, float* __restrict__ dbeta) {
  __shared__ ColumnFold::Shared<SumPair> shared;
  fold.run<SumPair>(
      shared,
      [&](int column, std::size_t first, std::size_t end, std::size_t step) {
        SumPair sums = SumPair::none();
        each_row(
            first, end, step,
            [&](std::size_t row) {
              const std::size_t i = row * width + column;
              return NormedElement{x[i], dy[i], moments[2 * row], moments[2 * row + 1]};
            },
            [&](std::size_t, const NormedElement& at) {
              sums.first += at.dy * ((at.x - at.mean) * at.scale);
              sums.second += at.dy;
            });
        return sums;
      },
      [&](int column, const SumPair& sums) {
        dgamma[column] = sums.first;
        dbeta[column] = sums.second;
      });
}

// x/2 · (1 + tanh(u)) and its slope, with u = kScale · (x + kCubic x³).
constexpr float kScale = 0.7978845608028654f;  // sqrt(2/pi)
constexpr float kCubic = 0.044715f;

__device__ float tanh_of_gelu(float x) { return tanhf(kScale * (x + kCubic * x * x * x)); }

__global__ void gelu_forward(const float* __restrict__ x, float* __restrict__ y, std::size_t count) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    y[i] = 0.5f * x[i] * (1.0f + tanh_of_gelu(x[i]));
  }
}

__global__ void gelu_backward(const float* __restrict__ x, const float* __restrict__ dy, float* __restrict__ dx,
                              std::size_t count) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const float value = x[i], tanh = tanh_of_gelu(value);
    const float slope = kScale * (1.0f + 3.0f * kCubic * value * value);
    dx[i] = dy[i] * (0.5f * (1.0f + tanh) + 0.5f * value * (1.0f - tanh * tanh) * slope);
  }
}

unsigned row_blocks(int rows) { return (static_cast<unsigned>(rows) + kRowsABlock - 1) / kRowsABlock; }

}  // namespace

cudaError_t launch_embedding_forward(const EmbeddingShape& shape, const int* ids, const float* tokens,
                                     const float* positions, float* y, cudaStream_t stream) {
  const std::size_t count = static_cast<std::size_t>(shape.rows()) * static_cast<std::size_t>(shape.width);
  embedding_forward<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(shape, ids, tokens, positions, y);
  return cudaGetLastError();
}

cudaError_t launch_embedding_backward(const EmbeddingShape& shape, const int* ids, const float* dy, float* dtokens,
                                      cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(shape.vocabulary), column_blocks(shape.width));
  embedding_backward<<<grid, kBlockColumns, 0, stream>>>(shape, ids, dy, dtokens);
  return cudaGetLastError();
}

cudaError_t launch_layer_norm_forward(const LayerNormShape& shape, const float* x, const float* gamma,
                                      const float* beta, float* y, float* moments, cudaStream_t stream) {
  layer_norm_forward<<<row_blocks(shape.rows), dim3(kWarp, kRowsABlock), 0, stream>>>(shape, x, gamma, beta, y,
                                                                                      moments);
  return cudaGetLastError();
}

cudaError_t launch_layer_norm_backward(const LayerNormShape& shape, const float* x, const float* gamma,
                                       const float* moments, const float* dy, float* dgamma, float* dbeta, float* dx,
                                       const FoldSpace& space, cudaStream_t stream) {
  const ColumnFold fold(static_cast<std::size_t>(shape.rows), shape.width, space);
  layer_norm_parameter_gradients<<<fold.grid(), fold.block(), 0, stream>>>(fold, shape.width, x, moments, dy, dgamma,
                                                                           dbeta);
  const cudaError_t first = cudaGetLastError();
  if (first != cudaSuccess || dx == nullptr) return first;
  layer_norm_input_gradient<<<row_blocks(shape.rows), dim3(kWarp, kRowsABlock), 0, stream>>>(shape, x, gamma, moments,
                                                                                             dy, dx);
  return cudaGetLastError();
}

cudaError_t launch_gelu_forward(const float* x, float* y, std::size_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  gelu_forward<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(x, y, count);
  return cudaGetLastError();
}

cudaError_t launch_gelu_backward(const float* x, const float* dy, float* dx, std::size_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  gelu_backward<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(x, dy, dx, count);
  return cudaGetLastError();
}

}  // namespace syncopate::worker
