#include <cstddef>

#include "worker/backend/cuda/image_kernels.h"
#include "worker/backend/cuda/kernel_grid.h"

namespace syncopate::worker {
namespace {

// Calls visit(i) for this thread's share of 0 .. count-1.
template <typename Visit>
__device__ void each_element(std::size_t count, Visit visit) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    visit(i);
  }
}

// One thread an image's channel.
__global__ void mean_pool_forward(MeanPoolShape s, const float* __restrict__ x, float* __restrict__ y) {
  each_element(static_cast<std::size_t>(s.batch) * s.channels, [&](std::size_t i) {
    const std::size_t image = i / s.channels, channel = i % s.channels;
    float sum = 0;
    for (int pixel = 0; pixel < s.pixels; ++pixel) sum += x[(image * s.pixels + pixel) * s.channels + channel];
    y[i] = sum / static_cast<float>(s.pixels);
  });
}

__global__ void mean_pool_backward(MeanPoolShape s, const float* __restrict__ dy, float* __restrict__ dx) {
  each_element(static_cast<std::size_t>(s.batch) * s.pixels * s.channels, [&](std::size_t i) {
    const std::size_t image = i / s.channels / s.pixels, channel = i % s.channels;
    dx[i] = dy[image * s.channels + channel] / static_cast<float>(s.pixels);
  });
}

// One thread an output.
__global__ void subsample_forward(SubsampleShape s, int out_height, int out_width, const float* __restrict__ x,
                                  float* __restrict__ y) {
  each_element(static_cast<std::size_t>(s.batch) * out_height * out_width * s.out, [&](std::size_t i) {
    const auto channel = static_cast<int>(i % s.out);
    const std::size_t pixel = i / s.out;
    const std::size_t column = pixel % out_width * s.stride;
    const std::size_t row = pixel / out_width % out_height * s.stride;
    const std::size_t image = pixel / out_width / out_height;
    y[i] = channel < s.in ? x[((image * s.height + row) * s.width + column) * s.in + channel] : 0.0f;
  });
}

// One thread an input, so that all of dx is written.
__global__ void subsample_backward(SubsampleShape s, int out_height, int out_width, const float* __restrict__ dy,
                                   float* __restrict__ dx) {
  each_element(static_cast<std::size_t>(s.batch) * s.height * s.width * s.in, [&](std::size_t i) {
    const auto channel = static_cast<int>(i % s.in);
    const std::size_t pixel = i / s.in;
    const auto column = static_cast<int>(pixel % s.width);
    const auto row = static_cast<int>(pixel / s.width % s.height);
    const std::size_t image = pixel / s.width / s.height;
    const bool kept = row % s.stride == 0 && column % s.stride == 0 && channel < s.out;
    const std::size_t out = (image * out_height + row / s.stride) * out_width + column / s.stride;
    dx[i] = kept ? dy[out * s.out + channel] : 0.0f;
  });
}

}  // namespace

cudaError_t launch_mean_pool_forward(const MeanPoolShape& s, const float* x, float* y, cudaStream_t stream) {
  const std::size_t count = static_cast<std::size_t>(s.batch) * s.channels;
  mean_pool_forward<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(s, x, y);
  return cudaGetLastError();
}

cudaError_t launch_mean_pool_backward(const MeanPoolShape& s, const float* dy, float* dx, cudaStream_t stream) {
  const std::size_t count = static_cast<std::size_t>(s.batch) * s.pixels * s.channels;
  mean_pool_backward<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(s, dy, dx);
  return cudaGetLastError();
}

cudaError_t launch_subsample_forward(const SubsampleShape& s, const float* x, float* y, cudaStream_t stream) {
  const int height = s.out_height(), width = s.out_width();
  const std::size_t count = static_cast<std::size_t>(s.batch) * height * width * s.out;
  subsample_forward<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(s, height, width, x, y);
  return cudaGetLastError();
}

cudaError_t launch_subsample_backward(const SubsampleShape& s, const float* dy, float* dx, cudaStream_t stream) {
  const std::size_t count = static_cast<std::size_t>(s.batch) * s.height * s.width * s.in;
  subsample_backward<<<blocks_for(count, kThreads), kThreads, 0, stream>>>(s, s.out_height(), s.out_width(), dy, dx);
  return cudaGetLastError();
}

}  // namespace syncopate::worker
