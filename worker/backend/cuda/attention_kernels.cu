#include <cmath>
#include <cstddef>

#include "worker/backend/cuda/attention_kernels.h"
#include "worker/backend/cuda/warp.h"

namespace syncopate::worker {
namespace {

constexpr unsigned kWarpsABlock = 4;

// A warp's position of one head of one text: where its rows lie.
struct Place {
  int context, position;           // T, t
  std::size_t width, head_width;   // C, D
  std::size_t in_qkv, in_y, in_p;  // where the head's position 0 begins, in each tensor

  // Return the row of the head's position: its query, key and value are `width` elements apart.
  __device__ std::size_t row_of_qkv(int at) const { return in_qkv + at * 3 * width; }
  __device__ std::size_t row_of_y(int at) const { return in_y + at * width; }
  __device__ std::size_t row_of_p(int at) const { return in_p + static_cast<std::size_t>(at) * context; }
};

// False for a warp that has none.
__device__ bool find_place(const AttentionShape& s, Place& place) {
  const std::size_t number = static_cast<std::size_t>(blockIdx.x) * kWarpsABlock + threadIdx.y;
  const std::size_t head = number / s.context;  // of all texts
  if (head >= static_cast<std::size_t>(s.batch) * s.heads) return false;
  const std::size_t width = s.width, head_width = s.width / s.heads;
  const std::size_t text = head / s.heads, column = head % s.heads * head_width;
  place = {.context = s.context,
           .position = static_cast<int>(number % s.context),
           .width = width,
           .head_width = head_width,
           .in_qkv = text * s.context * 3 * width + column,
           .in_y = text * s.context * width + column,
           .in_p = head * s.context * s.context};
  return true;
}

__device__ float dot(const float* __restrict__ a, const float* __restrict__ b, std::size_t count) {
  float sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// to[d] = scale · sum over `first` <= i < `end` of weights[i · weight_stride] rows[i · row_stride + d]; lanes share the
// columns.
__device__ void weighted_rows(float* to, std::size_t columns, const float* weights, std::size_t weight_stride,
                              const float* rows, std::size_t row_stride, int first, int end, float scale) {
  for (std::size_t d = threadIdx.x; d < columns; d += kWarp) {
    float sum = 0;
    for (int i = first; i < end; ++i) sum += weights[i * weight_stride] * rows[i * row_stride + d];
    to[d] = scale * sum;
  }
}

// A warp has a query.
__global__ void attention_forward(AttentionShape s, float scale, const float* __restrict__ qkv, float* __restrict__ y,
                                  float* probabilities) {
  Place place;
  if (!find_place(s, place)) return;
  const int t = place.position, lane = static_cast<int>(threadIdx.x);
  float* const p = probabilities + place.row_of_p(t);
  const float* const query = qkv + place.row_of_qkv(t);

  float largest = -INFINITY;
  for (int key = lane; key <= t; key += kWarp) {
    p[key] = scale * dot(query, qkv + place.row_of_qkv(key) + place.width, place.head_width);
    largest = fmaxf(largest, p[key]);
  }
  largest = warp_largest(largest);
  float sum = 0;
  for (int key = lane; key <= t; key += kWarp) {
    p[key] = expf(p[key] - largest);
    sum += p[key];
  }
  sum = warp_sum(sum);
  for (int key = lane; key < place.context; key += kWarp) p[key] = key <= t ? p[key] / sum : 0.0f;
  __syncwarp();  // the lanes read one another's
  weighted_rows(y + place.row_of_y(t), place.head_width, p, 1, qkv + place.in_qkv + 2 * place.width, 3 * place.width, 0,
                t + 1, 1.0f);
}

// A warp has a value: dv[s] = sum over t >= s of p[t][s] dy[t].
__global__ void value_gradient(AttentionShape s, const float* __restrict__ dy, const float* __restrict__ probabilities,
                               float* __restrict__ dqkv) {
  Place place;
  if (!find_place(s, place)) return;
  weighted_rows(dqkv + place.row_of_qkv(place.position) + 2 * place.width, place.head_width,
                probabilities + place.in_p + place.position, place.context, dy + place.in_y, place.width,
                place.position, place.context, 1.0f);
}

// A warp has a query: the gradient of its scores, p · (dp - sum of p dp) with dp[s] = dy · v[s], in p's place; then dq.
__global__ void query_gradient(AttentionShape s, float scale, const float* __restrict__ qkv,
                               const float* __restrict__ dy, float* probabilities, float* __restrict__ dqkv) {
  Place place;
  if (!find_place(s, place)) return;
  const int t = place.position, lane = static_cast<int>(threadIdx.x);
  float* const p = probabilities + place.row_of_p(t);
  const float* const gradient = dy + place.row_of_y(t);
  const auto dp = [&](int key) {
    return dot(gradient, qkv + place.row_of_qkv(key) + 2 * place.width, place.head_width);
  };

  float mean = 0;
  for (int key = lane; key <= t; key += kWarp) mean += p[key] * dp(key);
  mean = warp_sum(mean);
  for (int key = lane; key <= t; key += kWarp) p[key] *= dp(key) - mean;
  __syncwarp();  // the lanes read one another's
  weighted_rows(dqkv + place.row_of_qkv(t), place.head_width, p, 1, qkv + place.in_qkv + place.width, 3 * place.width,
                0, t + 1, scale);
}

// A warp has a key: dk[s] = scale · sum over t >= s of dscore[t][s] q[t].
__global__ void key_gradient(AttentionShape s, float scale, const float* __restrict__ qkv,
                             const float* __restrict__ dscores, float* __restrict__ dqkv) {
  Place place;
  if (!find_place(s, place)) return;
  weighted_rows(dqkv + place.row_of_qkv(place.position) + place.width, place.head_width,
                dscores + place.in_p + place.position, place.context, qkv + place.in_qkv, 3 * place.width,
                place.position, place.context, scale);
}

unsigned blocks_of(const AttentionShape& s) {
  const std::size_t warps =
      static_cast<std::size_t>(s.batch) * static_cast<std::size_t>(s.heads) * static_cast<std::size_t>(s.context);
  return static_cast<unsigned>((warps + kWarpsABlock - 1) / kWarpsABlock);
}

float scale_of(const AttentionShape& s) { return 1.0f / std::sqrt(static_cast<float>(s.head_width())); }

constexpr dim3 kBlock(kWarp, kWarpsABlock);

}  // namespace

cudaError_t launch_attention_forward(const AttentionShape& shape, const float* qkv, float* y, float* probabilities,
                                     cudaStream_t stream) {
  attention_forward<<<blocks_of(shape), kBlock, 0, stream>>>(shape, scale_of(shape), qkv, y, probabilities);
  return cudaGetLastError();
}

cudaError_t launch_attention_backward(const AttentionShape& shape, const float* qkv, const float* dy,
                                      float* probabilities, float* dqkv, cudaStream_t stream) {
  value_gradient<<<blocks_of(shape), kBlock, 0, stream>>>(shape, dy, probabilities, dqkv);
  query_gradient<<<blocks_of(shape), kBlock, 0, stream>>>(shape, scale_of(shape), qkv, dy, probabilities, dqkv);
  key_gradient<<<blocks_of(shape), kBlock, 0, stream>>>(shape, scale_of(shape), qkv, probabilities, dqkv);
  return cudaGetLastError();
}

}  // namespace syncopate::worker
