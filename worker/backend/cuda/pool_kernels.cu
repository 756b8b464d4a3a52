#include <algorithm>
#include <cstddef>

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

// One thread an output's pixel and every 32nd channel.
__global__ void max_pool_forward(PoolImages images, int pixels, const float* __restrict__ x, float* __restrict__ y,
                                 unsigned char* __restrict__ index) {
  const int out_height = images.height / images.size;
  const int out_width = images.width / images.size;
  const std::size_t channels = images.channels;
  for (unsigned pixel = blockIdx.x * kBlockPixels + threadIdx.y; pixel < static_cast<unsigned>(pixels);
       pixel += gridDim.x * kBlockPixels) {
    const int column = static_cast<int>(pixel % out_width);
    const int row = static_cast<int>(pixel / out_width % out_height);
    const std::size_t image = pixel / out_width / out_height;
    const std::size_t corner =
        (image * images.height + static_cast<std::size_t>(row) * images.size) * images.width + column * images.size;
    for (std::size_t c = threadIdx.x; c < channels; c += kBlockChannels) {
      float best = x[corner * channels + c];
      int winner = 0;
      for (int k = 1; k < images.size * images.size; ++k) {
        const std::size_t place = corner + static_cast<std::size_t>(k / images.size) * images.width + k % images.size;
        const float value = x[place * channels + c];
        if (value > best) {
          best = value;
          winner = k;
        }
      }
      y[pixel * channels + c] = best;
      index[pixel * channels + c] = static_cast<unsigned char>(winner);
    }
  }
}

// One thread an input's pixel and every 32nd channel: it looks up who won its window, so that all of dx is written and
// nothing is added up.
__global__ void max_pool_backward(PoolImages images, int pixels, const float* __restrict__ dy,
                                  const unsigned char* __restrict__ index, float* __restrict__ dx) {
  const int out_height = images.height / images.size;
  const int out_width = images.width / images.size;
  const std::size_t channels = images.channels;
  for (unsigned pixel = blockIdx.x * kBlockPixels + threadIdx.y; pixel < static_cast<unsigned>(pixels);
       pixel += gridDim.x * kBlockPixels) {
    const int column = static_cast<int>(pixel % images.width);
    const int row = static_cast<int>(pixel / images.width % images.height);
    const std::size_t image = pixel / images.width / images.height;
    const int out_column = column / images.size;
    const int out_row = row / images.size;
    const bool in_a_window = out_column < out_width && out_row < out_height;
    const int place = row % images.size * images.size + column % images.size;
    const std::size_t out = (image * out_height + out_row) * out_width + out_column;
    for (std::size_t c = threadIdx.x; c < channels; c += kBlockChannels) {
      dx[pixel * channels + c] = in_a_window && index[out * channels + c] == place ? dy[out * channels + c] : 0.0f;
    }
  }
}

}  // namespace

cudaError_t launch_max_pool_forward(const PoolImages& images, const float* x, float* y, unsigned char* index,
                                    cudaStream_t stream) {
  const int pixels = images.batch * (images.height / images.size) * (images.width / images.size);
  if (pixels == 0) return cudaSuccess;
  max_pool_forward<<<blocks_for(pixels), dim3(kBlockChannels, kBlockPixels), 0, stream>>>(images, pixels, x, y, index);
  return cudaGetLastError();
}

cudaError_t launch_max_pool_backward(const PoolImages& images, const float* dy, const unsigned char* index, float* dx,
                                     cudaStream_t stream) {
  const int pixels = images.batch * images.height * images.width;
  if (pixels == 0) return cudaSuccess;
  max_pool_backward<<<blocks_for(pixels), dim3(kBlockChannels, kBlockPixels), 0, stream>>>(images, pixels, dy, index,
                                                                                           dx);
  return cudaGetLastError();
}

}  // namespace syncopate::worker
