#include <cstddef>

#include "common/device/cuda/element_types.h"
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
template <typename T>
__global__ void mean_pool_forward(MeanPoolShape s, const T* __restrict__ x, T* __restrict__ y) {
  each_element(static_cast<std::size_t>(s.batch) * s.channels, [&](std::size_t i) {
    const std::size_t image = i / s.channels, channel = i % s.channels;
    float sum = 0;
    for (int pixel = 0; pixel < s.pixels; ++pixel) {
      sum += to_float(x[(image * s.pixels + pixel) * s.channels + channel]);
    }
    y[i] = from_float<T>(sum / static_cast<float>(s.pixels));
  });
}

template <typename T>
__global__ void mean_pool_backward(MeanPoolShape s, const T* __restrict__ dy, T* __restrict__ dx) {
  each_element(static_cast<std::size_t>(s.batch) * s.pixels * s.channels, [&](std::size_t i) {
    const std::size_t image = i / s.channels / s.pixels, channel = i % s.channels;
    dx[i] = from_float<T>(to_float(dy[image * s.channels + channel]) / static_cast<float>(s.pixels));
  });
}

// One thread an output.
template <typename T>
__global__ void subsample_forward(SubsampleShape s, int out_height, int out_width, const T* __restrict__ x,
                                  T* __restrict__ y) {
  each_element(static_cast<std::size_t>(s.batch) * out_height * out_width * s.out, [&](std::size_t i) {
    const auto channel = static_cast<int>(i % s.out);
    const std::size_t pixel = i / s.out;
    const std::size_t column = pixel % out_width * s.stride;
    const std::size_t row = pixel / out_width % out_height * s.stride;
    const std::size_t image = pixel / out_width / out_height;
    y[i] = channel < s.in ? x[((image * s.height + row) * s.width + column) * s.in + channel] : from_float<T>(0.0f);
  });
}

// One thread an input, so that all of dx is written.
template <typename T>
__global__ void subsample_backward(SubsampleShape s, int out_height, int out_width, const T* __restrict__ dy,
                                   T* __restrict__ dx) {
  each_element(static_cast<std::size_t>(s.batch) * s.height * s.width * s.in, [&](std::size_t i) {
    const auto channel = static_cast<int>(i % s.in);
    const std::size_t pixel = i / s.in;
    const auto column = static_cast<int>(pixel % s.width);
    const auto row = static_cast<int>(pixel / s.width % s.height);
    const std::size_t image = pixel / s.width / s.height;
    const bool kept = row % s.stride == 0 && column % s.stride == 0 && channel < s.out;
    const std::size_t out = (image * out_height + row / s.stride) * out_width + column / s.stride;
    dx[i] = kept ? dy[out * s.out + channel] : from_float<T>(0.0f);
  });
}

}  // namespace

cudaError_t launch_mean_pool_forward(const MeanPoolShape& s, In x, Out y, cudaStream_t stream) {
  return with_element(x.type(), [&]<typename T>(T) {
    mean_pool_forward<T><<<blocks_for(y.size(), kThreads), kThreads, 0, stream>>>(s, elements<T>(x), elements<T>(y));
    return cudaGetLastError();
  });
}

cudaError_t launch_mean_pool_backward(const MeanPoolShape& s, In dy, Out dx, cudaStream_t stream) {
  return with_element(dy.type(), [&]<typename T>(T) {
    mean_pool_backward<T>
        <<<blocks_for(dx.size(), kThreads), kThreads, 0, stream>>>(s, elements<T>(dy), elements<T>(dx));
    return cudaGetLastError();
  });
}

cudaError_t launch_subsample_forward(const SubsampleShape& s, In x, Out y, cudaStream_t stream) {
  return with_element(x.type(), [&]<typename T>(T) {
    subsample_forward<T><<<blocks_for(y.size(), kThreads), kThreads, 0, stream>>>(s, s.out_height(), s.out_width(),
                                                                                  elements<T>(x), elements<T>(y));
    return cudaGetLastError();
  });
}

cudaError_t launch_subsample_backward(const SubsampleShape& s, In dy, Out dx, cudaStream_t stream) {
  return with_element(dy.type(), [&]<typename T>(T) {
    subsample_backward<T><<<blocks_for(dx.size(), kThreads), kThreads, 0, stream>>>(s, s.out_height(), s.out_width(),
                                                                                    elements<T>(dy), elements<T>(dx));
    return cudaGetLastError();
  });
}

}  // namespace syncopate::worker
