#include <algorithm>
#include <cstddef>

#include "common/device/cuda/element_types.h"
#include "worker/backend/cuda/pool_kernels.h"

namespace syncopate::worker {
namespace {

// A block has some pixels; neighbours in a warp are neighbouring channels of one pixel, which lie side by side.
constexpr unsigned kBlockChannels = 32;
constexpr unsigned kBlockPixels = 8;
constexpr unsigned kMostBlocks = 1u << 20;  // the rest is done by loops

unsigned blocks_for(int pixels) {
  return std::min((static_cast<unsigned>(pixels) + kBlockPixels - 1) / kBlockPixels, kMostBlocks);
}

// Windows or pixels along one side: first .. end-1.
struct Side {
  int first, end;
};

// The pixels of the image in the window that begins at `begin`, which may lie outside.
__device__ Side pixels_in(int begin, int size, int pixels) {
  return {begin < 0 ? 0 : begin, begin + size < pixels ? begin + size : pixels};
}

// The windows that hold a pixel.
__device__ Side windows_over(const PoolShape& s, int pixel, int windows) {
  const int place = pixel + s.padding;  // from the first window's begin
  const int end = place / s.stride + 1;
  return {place < s.size ? 0 : (place - s.size) / s.stride + 1, end < windows ? end : windows};
}

// One thread an output's pixel and every 32nd channel.
template <typename T>
__global__ void max_pool_forward(PoolShape s, int out_height, int out_width, const T* __restrict__ x, T* __restrict__ y,
                                 unsigned char* __restrict__ index) {
  const std::size_t channels = s.channels;
  const unsigned pixels = static_cast<unsigned>(s.batch) * out_height * out_width;
  for (unsigned pixel = blockIdx.x * kBlockPixels + threadIdx.y; pixel < pixels; pixel += gridDim.x * kBlockPixels) {
    const int left = static_cast<int>(pixel % out_width) * s.stride - s.padding;
    const int top = static_cast<int>(pixel / out_width % out_height) * s.stride - s.padding;
    const T* const image = x + pixel / out_width / out_height * channels * s.height * s.width;
    const Side rows = pixels_in(top, s.size, s.height), columns = pixels_in(left, s.size, s.width);
    for (std::size_t c = threadIdx.x; c < channels; c += kBlockChannels) {
      float best = to_float(image[(static_cast<std::size_t>(rows.first) * s.width + columns.first) * channels + c]);
      int winner = (rows.first - top) * s.size + columns.first - left;
      for (int row = rows.first; row < rows.end; ++row) {
        for (int column = columns.first; column < columns.end; ++column) {
          const float value = to_float(image[(static_cast<std::size_t>(row) * s.width + column) * channels + c]);
          if (value > best) {
            best = value;
            winner = (row - top) * s.size + column - left;
          }
        }
      }
      y[pixel * channels + c] = from_float<T>(best);
      index[pixel * channels + c] = static_cast<unsigned char>(winner);
    }
  }
}

// One thread an input's pixel and every 32nd channel: it looks up which of its windows it has won, so that all of dx is
// written, by one thread each, and the sum has one order.
template <typename T>
__global__ void max_pool_backward(PoolShape s, int out_height, int out_width, const T* __restrict__ dy,
                                  const unsigned char* __restrict__ index, T* __restrict__ dx) {
  const std::size_t channels = s.channels;
  const unsigned pixels = static_cast<unsigned>(s.batch) * s.height * s.width;
  for (unsigned pixel = blockIdx.x * kBlockPixels + threadIdx.y; pixel < pixels; pixel += gridDim.x * kBlockPixels) {
    const int x = static_cast<int>(pixel % s.width);
    const int y = static_cast<int>(pixel / s.width % s.height);
    const std::size_t image = pixel / s.width / s.height;
    const Side rows = windows_over(s, y, out_height), columns = windows_over(s, x, out_width);
    for (std::size_t c = threadIdx.x; c < channels; c += kBlockChannels) {
      float sum = 0;
      for (int row = rows.first; row < rows.end; ++row) {
        for (int column = columns.first; column < columns.end; ++column) {
          const std::size_t out = ((image * out_height + row) * out_width + column) * channels + c;
          const int number = (y + s.padding - row * s.stride) * s.size + x + s.padding - column * s.stride;
          if (index[out] == number) sum += to_float(dy[out]);
        }
      }
      dx[pixel * channels + c] = from_float<T>(sum);
    }
  }
}

}  // namespace

cudaError_t launch_max_pool_forward(const PoolShape& s, In x, Out y, unsigned char* index, cudaStream_t stream) {
  const int pixels = s.batch * s.out_height() * s.out_width();
  if (pixels == 0) return cudaSuccess;
  return with_element(x.type(), [&]<typename T>(T) {
    max_pool_forward<T><<<blocks_for(pixels), dim3(kBlockChannels, kBlockPixels), 0, stream>>>(
        s, s.out_height(), s.out_width(), elements<T>(x), elements<T>(y), index);
    return cudaGetLastError();
  });
}

cudaError_t launch_max_pool_backward(const PoolShape& s, In dy, const unsigned char* index, Out dx,
                                     cudaStream_t stream) {
  const int pixels = s.batch * s.height * s.width;
  if (pixels == 0) return cudaSuccess;
  return with_element(dy.type(), [&]<typename T>(T) {
    max_pool_backward<T><<<blocks_for(pixels), dim3(kBlockChannels, kBlockPixels), 0, stream>>>(
        s, s.out_height(), s.out_width(), elements<T>(dy), index, elements<T>(dx));
    return cudaGetLastError();
  });
}

}  // namespace syncopate::worker
