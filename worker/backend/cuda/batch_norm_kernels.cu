#include <algorithm>

#include "worker/backend/compute_backend.h"
#include "worker/backend/cuda/batch_norm_kernels.h"
#include "worker/backend/cuda/kernel_grid.h"

namespace syncopate::worker {
namespace {

// A part of the rows, for a block: [begin, end).
struct Part {
  std::size_t begin, end;
};

__device__ Part part_of(std::size_t rows, std::size_t part_rows) {
  const std::size_t begin = blockIdx.y * part_rows;
  return {begin, begin + part_rows < rows ? begin + part_rows : rows};
}

// Adds up the sums of a block's threads column by column, and writes them as sums(parts, channels) of pairs.
__device__ void write_sums(float2 sum, int column, int channels, float2* __restrict__ sums) {
  __shared__ float2 of_threads[kBlockRows][kBlockColumns];
  of_threads[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= channels) return;
  for (unsigned i = 1; i < kBlockRows; ++i) {
    sum.x += of_threads[i][threadIdx.x].x;
    sum.y += of_threads[i][threadIdx.x].y;
  }
  sums[static_cast<std::size_t>(blockIdx.y) * channels + column] = sum;
}

// Sums x - x[0] and its square, so that what all rows have in common costs no digits.
__global__ void sum_moments(BatchNormRows shape, const float* __restrict__ x, std::size_t part_rows,
                            float2* __restrict__ sums) {
  const int column = static_cast<int>(blockIdx.x * kBlockColumns + threadIdx.x);
  const Part part = part_of(shape.rows, part_rows);
  float2 sum = {0, 0};
  if (column < shape.channels) {
    const float pivot = x[column];
    for (std::size_t row = part.begin + threadIdx.y; row < part.end; row += kBlockRows) {
      const float difference = x[row * shape.channels + column] - pivot;
      sum.x += difference;
      sum.y += difference * difference;
    }
  }
  write_sums(sum, column, shape.channels, sums);
}

// The sums of all parts, of one channel.
__device__ double2 total(const float2* __restrict__ sums, std::size_t parts, int channel, int channels) {
  double2 sum = {0, 0};
  for (std::size_t part = 0; part < parts; ++part) {
    const float2 of_part = sums[part * channels + channel];
    sum.x += of_part.x;
    sum.y += of_part.y;
  }
  return sum;
}

// One thread a channel.
__global__ void finish_moments(BatchNormRows shape, const float* __restrict__ x, const float2* __restrict__ sums,
                               std::size_t parts, BatchNormMoments batch, BatchNormRunning running) {
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= shape.channels) return;
  const double2 sum = total(sums, parts, c, shape.channels);
  const auto rows = static_cast<double>(shape.rows);
  const double shifted_mean = sum.x / rows;
  const double spread = sum.y / rows - shifted_mean * shifted_mean;
  const double variance = spread > 0 ? spread : 0;
  const auto mean = static_cast<float>(x[c] + shifted_mean);
  const auto unbiased = static_cast<float>(variance * rows / (rows > 1 ? rows - 1 : 1));
  batch.mean[c] = mean;
  batch.inverse_deviation[c] = static_cast<float>(1 / sqrt(variance + kBatchNormEpsilon));
  running.mean[c] += kBatchNormMomentum * (mean - running.mean[c]);
  running.variance[c] += kBatchNormMomentum * (unbiased - running.variance[c]);
}

// What one channel's values are turned into: (x - mean) · factor + shift.
struct Line {
  float mean, factor, shift;
  __device__ float at(float x) const { return (x - mean) * factor + shift; }
};

// A thread has one column, and every so many-th row. `spread` is the inverse deviation, or the variance.
__global__ void normalise(BatchNormRows shape, const float* __restrict__ x, BatchNormScale learnt,
                          const float* __restrict__ mean, const float* __restrict__ spread, bool is_variance,
                          float* __restrict__ y) {
  const int column = static_cast<int>(blockIdx.x * kBlockColumns + threadIdx.x);
  if (column >= shape.channels) return;
  const float inverse_deviation = is_variance ? 1 / sqrtf(spread[column] + kBatchNormEpsilon) : spread[column];
  const Line line{mean[column], learnt.scale[column] * inverse_deviation, learnt.shift[column]};
  const std::size_t stride = static_cast<std::size_t>(gridDim.y) * kBlockRows;
  for (std::size_t row = static_cast<std::size_t>(blockIdx.y) * kBlockRows + threadIdx.y; row < shape.rows;
       row += stride) {
    const float value = line.at(x[row * shape.channels + column]);
    y[row * shape.channels + column] = shape.relu && value < 0.0f ? 0.0f : value;
  }
}

// dy where relu has not cut the output, which is computed again rather than read again.
__device__ float gradient(const Line& line, bool relu, float x, float dy) {
  return relu && !(line.at(x) > 0.0f) ? 0.0f : dy;
}

__device__ Line line_of(int c, const BatchNormScale& learnt, const BatchNormMoments& batch) {
  return {batch.mean[c], learnt.scale[c] * batch.inverse_deviation[c], learnt.shift[c]};
}

// Sums the gradient, and the gradient times x - mean.
__global__ void sum_gradients(BatchNormRows shape, const float* __restrict__ x, BatchNormScale learnt,
                              BatchNormMoments batch, const float* __restrict__ dy, std::size_t part_rows,
                              float2* __restrict__ sums) {
  const int column = static_cast<int>(blockIdx.x * kBlockColumns + threadIdx.x);
  const Part part = part_of(shape.rows, part_rows);
  float2 sum = {0, 0};
  if (column < shape.channels) {
    const Line line = line_of(column, learnt, batch);
    for (std::size_t row = part.begin + threadIdx.y; row < part.end; row += kBlockRows) {
      const std::size_t i = row * shape.channels + column;
      const float of_output = gradient(line, shape.relu, x[i], dy[i]);
      sum.x += of_output;
      sum.y += of_output * (x[i] - line.mean);
    }
  }
  write_sums(sum, column, shape.channels, sums);
}

// One thread a channel.
__global__ void finish_gradients(BatchNormRows shape, const float2* __restrict__ sums, std::size_t parts,
                                 BatchNormMoments batch, float* __restrict__ dscale, float* __restrict__ dshift) {
  const int c = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (c >= shape.channels) return;
  const double2 sum = total(sums, parts, c, shape.channels);
  dshift[c] = static_cast<float>(sum.x);
  dscale[c] = static_cast<float>(sum.y * batch.inverse_deviation[c]);
}

// dx = factor · (gradient - mean gradient - unit · mean of gradient·unit), unit = (x - mean) · inverse_deviation.
__global__ void input_gradient(BatchNormRows shape, const float* __restrict__ x, BatchNormScale learnt,
                               BatchNormMoments batch, const float* __restrict__ dy, const float* __restrict__ dscale,
                               const float* __restrict__ dshift, float* __restrict__ dx) {
  const int column = static_cast<int>(blockIdx.x * kBlockColumns + threadIdx.x);
  if (column >= shape.channels) return;
  const Line line = line_of(column, learnt, batch);
  const auto rows = static_cast<float>(shape.rows);
  const float common = dshift[column] / rows;
  const float slope = dscale[column] * batch.inverse_deviation[column] / rows;
  const std::size_t stride = static_cast<std::size_t>(gridDim.y) * kBlockRows;
  for (std::size_t row = static_cast<std::size_t>(blockIdx.y) * kBlockRows + threadIdx.y; row < shape.rows;
       row += stride) {
    const std::size_t i = row * shape.channels + column;
    dx[i] = line.factor * (gradient(line, shape.relu, x[i], dy[i]) - common - (x[i] - line.mean) * slope);
  }
}

// How rows are cut into parts whose sums fit into the workspace.
struct Parts {
  std::size_t count, rows;
};

Parts parts_of(const BatchNormRows& shape, std::span<std::byte> workspace) {
  const std::size_t room = workspace.size() / sizeof(float2) / static_cast<std::size_t>(shape.channels);
  const std::size_t wanted = std::min({ceil_divide(shape.rows, kLeastRows), kMostParts, room});
  const std::size_t rows = ceil_divide(shape.rows, std::max<std::size_t>(wanted, 1));
  return {ceil_divide(shape.rows, rows), rows};
}

const dim3 kMatrixBlock(kBlockColumns, kBlockRows);

dim3 grid_of_parts(const BatchNormRows& shape, const Parts& parts) {
  return {column_blocks(shape.channels), static_cast<unsigned>(parts.count)};
}
dim3 grid_of_rows(const BatchNormRows& shape) {
  return {column_blocks(shape.channels), blocks_for(shape.rows, kBlockRows)};
}

}  // namespace

cudaError_t launch_batch_norm_forward(const BatchNormRows& shape, const float* x, const BatchNormScale& learnt,
                                      const BatchNormMoments& batch, const BatchNormRunning& running, float* y,
                                      std::span<std::byte> workspace, cudaStream_t stream) {
  const Parts parts = parts_of(shape, workspace);
  auto* const sums = reinterpret_cast<float2*>(workspace.data());
  sum_moments<<<grid_of_parts(shape, parts), kMatrixBlock, 0, stream>>>(shape, x, parts.rows, sums);
  finish_moments<<<blocks_for(shape.channels, kThreads), kThreads, 0, stream>>>(shape, x, sums, parts.count, batch,
                                                                                running);
  normalise<<<grid_of_rows(shape), kMatrixBlock, 0, stream>>>(shape, x, learnt, batch.mean, batch.inverse_deviation,
                                                              false, y);
  return cudaGetLastError();
}

cudaError_t launch_batch_norm_backward(const BatchNormRows& shape, const float* x, const BatchNormScale& learnt,
                                       const BatchNormMoments& batch, const float* dy, float* dscale, float* dshift,
                                       float* dx, std::span<std::byte> workspace, cudaStream_t stream) {
  const Parts parts = parts_of(shape, workspace);
  auto* const sums = reinterpret_cast<float2*>(workspace.data());
  sum_gradients<<<grid_of_parts(shape, parts), kMatrixBlock, 0, stream>>>(shape, x, learnt, batch, dy, parts.rows,
                                                                          sums);
  finish_gradients<<<blocks_for(shape.channels, kThreads), kThreads, 0, stream>>>(shape, sums, parts.count, batch,
                                                                                  dscale, dshift);
  if (dx != nullptr) {
    input_gradient<<<grid_of_rows(shape), kMatrixBlock, 0, stream>>>(shape, x, learnt, batch, dy, dscale, dshift, dx);
  }
  return cudaGetLastError();
}

cudaError_t launch_batch_norm_inference(const BatchNormRows& shape, const float* x, const BatchNormScale& learnt,
                                        const BatchNormRunning& running, float* y, cudaStream_t stream) {
  normalise<<<grid_of_rows(shape), kMatrixBlock, 0, stream>>>(shape, x, learnt, running.mean, running.variance, true,
                                                              y);
  return cudaGetLastError();
}

}  // namespace syncopate::worker
