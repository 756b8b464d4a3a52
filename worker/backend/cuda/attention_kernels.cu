#include <cmath>
#include <cstddef>

#include "common/device/cuda/element_types.h"
#include "worker/backend/cuda/attention_kernels.h"
#include "worker/backend/cuda/kernel_grid.h"

namespace syncopate::worker {
namespace {

constexpr int kTile = 32;             // queries, keys, or columns
constexpr int kSide = 8;              // a block is kSide x kSide threads
constexpr int kEach = kTile / kSide;  // a thread has kEach x kEach elements of a tile, kSide apart
constexpr int kPieces = 2;            // tiles of columns of the results that a block makes

// Padded, so that threads that read down a column meet no bank twice.
using Tile = float[kTile][kTile + 1];
using Part = float[kEach][kEach];  // a thread's part of a tile

// A head's queries, keys, values or outputs: one row a position.
template <typename T>
struct Rows {
  const T* data;
  std::size_t stride;
};

// Copies kTile rows and columns; zeros stand for what lies beyond.
template <typename T>
__device__ void stage(Tile& to, const Rows<T>& from, int first_row, int rows, int first_column, int columns) {
  const int thread = static_cast<int>(threadIdx.y * kSide + threadIdx.x);
  const int column = thread % kTile;
  const bool has_column = first_column + column < columns;
  for (int row = thread / kTile; row < kTile; row += kSide * kSide / kTile) {
    const bool is_there = has_column && first_row + row < rows;
    to[row][column] = is_there ? to_float(from.data[(first_row + row) * from.stride + first_column + column]) : 0.0f;
  }
}

template <typename Visit>
__device__ void each_element(Visit visit) {
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
#pragma unroll
    for (int j = 0; j < kEach; ++j) visit(i, j);
  }
}
__device__ int row_of(int i) { return static_cast<int>(threadIdx.y) + i * kSide; }
__device__ int column_of(int j) { return static_cast<int>(threadIdx.x) + j * kSide; }

__device__ void clear(Part& part) {
  each_element([&](int i, int j) { part[i][j] = 0; });
}

// What a block works on: a head of a text, and a tile of its positions.
template <typename T>
struct Work {
  int context, head_width;
  std::size_t head;  // of all texts
  int tile, tiles;
  Rows<T> queries, keys, values;
  std::size_t in_qkv, in_y;  // where the head's position 0 begins
  std::size_t qkv_stride, y_stride;

  __device__ int first() const { return tile * kTile; }
  __device__ int first_column() const { return static_cast<int>(blockIdx.y) * kPieces * kTile; }
  // Where the head begins in (B, H, T).
  __device__ std::size_t in_rows() const { return head * context; }
};

// Block x counts tiles, then heads: those with the most work come first, which are the last queries and the first keys.
template <typename T>
__device__ Work<T> work_of(const AttentionShape& s, const T* qkv, bool last_tile_first) {
  Work<T> work;
  const unsigned heads = static_cast<unsigned>(s.batch) * static_cast<unsigned>(s.heads);
  const std::size_t width = s.width;
  work.context = s.context;
  work.head_width = s.width / s.heads;
  work.head = blockIdx.x % heads;
  work.tiles = (s.context + kTile - 1) / kTile;
  work.tile = static_cast<int>(blockIdx.x / heads);
  if (last_tile_first) work.tile = work.tiles - 1 - work.tile;
  const std::size_t text = work.head / s.heads, column = work.head % s.heads * work.head_width;
  work.qkv_stride = 3 * width;
  work.y_stride = width;
  work.in_qkv = text * s.context * work.qkv_stride + column;
  work.in_y = text * s.context * work.y_stride + column;
  work.queries = {qkv + work.in_qkv, work.qkv_stride};
  work.keys = {qkv + work.in_qkv + width, work.qkv_stride};
  work.values = {qkv + work.in_qkv + 2 * width, work.qkv_stride};
  return work;
}

// The tiles of a block in shared memory: two factors, and weights that rows are summed with.
struct Tiles {
  Tile first, second, weights;
};

// products[i][j] = a's row_of(i) · b's column_of(j), as rows, from the positions given on.
template <typename T>
__device__ void multiply_rows(Tiles& tiles, const Work<T>& work, const Rows<T>& a, int first_a, const Rows<T>& b,
                              int first_b, Part& products) {
  clear(products);
  for (int column = 0; column < work.head_width; column += kTile) {
    stage(tiles.first, a, first_a, work.context, column, work.head_width);
    stage(tiles.second, b, first_b, work.context, column, work.head_width);
    __syncthreads();
    const int columns = work.head_width - column < kTile ? work.head_width - column : kTile;
    for (int d = 0; d < columns; ++d) {
      float of_a[kEach], of_b[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        of_a[i] = tiles.first[row_of(i)][d];
        of_b[i] = tiles.second[column_of(i)][d];
      }
      each_element([&](int i, int j) { products[i][j] += of_a[i] * of_b[j]; });
    }
    __syncthreads();
  }
}

// sums += weights · rows, for this block's pieces of the columns.
template <typename T>
__device__ void add_weighted_rows(Tiles& tiles, const Work<T>& work, const Part& weights, const Rows<T>& rows,
                                  int first_row, Part (&sums)[kPieces]) {
  each_element([&](int i, int j) { tiles.weights[row_of(i)][column_of(j)] = weights[i][j]; });
  for (int piece = 0; piece < kPieces; ++piece) {
    const int column = work.first_column() + piece * kTile;
    if (column >= work.head_width) break;  // the whole block
    stage(tiles.second, rows, first_row, work.context, column, work.head_width);
    __syncthreads();
    for (int k = 0; k < kTile; ++k) {
      float of_weights[kEach], of_rows[kEach];
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        of_weights[i] = tiles.weights[row_of(i)][k];
        of_rows[i] = tiles.second[k][column_of(i)];
      }
      each_element([&](int i, int j) { sums[piece][i][j] += of_weights[i] * of_rows[j]; });
    }
    __syncthreads();
  }
}

// Writes sums times each row's factor to the block's tile of rows.
template <typename T, typename Factor>
__device__ void write_rows(const Work<T>& work, const Part (&sums)[kPieces], T* to, std::size_t stride, Factor factor) {
  for (int piece = 0; piece < kPieces; ++piece) {
    each_element([&](int i, int j) {
      const int row = work.first() + row_of(i), column = work.first_column() + piece * kTile + column_of(j);
      if (row < work.context && column < work.head_width) {
        to[row * stride + column] = from_float<T>(factor(i) * sums[piece][i][j]);
      }
    });
  }
}

// Reductions over the kSide threads that share rows: neighbours in a warp.
__device__ float row_sum(float mine) {
  for (unsigned distance = kSide / 2; distance > 0; distance /= 2) {
    mine += __shfl_xor_sync(0xffffffffu, mine, distance);
  }
  return mine;
}
__device__ float row_largest(float mine) {
  for (unsigned distance = kSide / 2; distance > 0; distance /= 2) {
    mine = fmaxf(mine, __shfl_xor_sync(0xffffffffu, mine, distance));
  }
  return mine;
}

// Block: a tile of queries. For each query the largest score so far, and the sum of exp(score - largest), are kept;
// what has been summed is multiplied by exp(old - new largest).
template <typename T>
__global__ void attention_forward(AttentionShape s, float scale, const T* __restrict__ qkv, T* __restrict__ y,
                                  float* __restrict__ log_sums) {
  __shared__ Tiles tiles;
  const Work<T> work = work_of(s, qkv, true);
  Part outputs[kPieces];
  for (Part& piece : outputs) clear(piece);
  float largest[kEach], sum[kEach];
  for (int i = 0; i < kEach; ++i) {
    largest[i] = -INFINITY;
    sum[i] = 0;
  }
  for (int tile = 0; tile <= work.tile; ++tile) {
    Part p;
    multiply_rows(tiles, work, work.queries, work.first(), work.keys, tile * kTile, p);
    each_element([&](int i, int j) {
      const bool is_seen = tile * kTile + column_of(j) <= work.first() + row_of(i);
      p[i][j] = is_seen ? scale * p[i][j] : -INFINITY;
    });
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      float of_row = p[i][0];
      for (int j = 1; j < kEach; ++j) of_row = fmaxf(of_row, p[i][j]);
      const float now = fmaxf(largest[i], row_largest(of_row));
      const float shrink = expf(largest[i] - now);  // 0 at first
      float added = 0;
      for (int j = 0; j < kEach; ++j) {
        p[i][j] = expf(p[i][j] - now);
        added += p[i][j];
      }
      sum[i] = sum[i] * shrink + row_sum(added);
      largest[i] = now;
      for (Part& piece : outputs) {
        for (int j = 0; j < kEach; ++j) piece[i][j] *= shrink;
      }
    }
    add_weighted_rows(tiles, work, p, work.values, tile * kTile, outputs);
  }
  write_rows(work, outputs, y + work.in_y, work.y_stride, [&](int i) { return 1 / sum[i]; });
  if (threadIdx.x != 0 || blockIdx.y != 0) return;
  for (int i = 0; i < kEach; ++i) {
    const int query = work.first() + row_of(i);
    if (query < work.context) log_sums[work.in_rows() + query] = largest[i] + logf(sum[i]);
  }
}

// Reads what belongs to the queries `at(i)`; 0 stands for those beyond the text.
template <typename T, typename At>
__device__ void read_rows(const Work<T>& work, const float* from, float (&values)[kEach], At at) {
  for (int i = 0; i < kEach; ++i) values[i] = at(i) < work.context ? from[work.in_rows() + at(i)] : 0.0f;
}

// Block: a tile of queries. dq = scale · the sum over keys of ds k, with p = exp(score - log sum) and ds = p · (dp -
// dot); dp = dy · value, and dot = dy · y, which is the sum of p dp. Leaves `dots` for the keys' kernel.
template <typename T>
__global__ void attention_query_gradient(AttentionShape s, float scale, const T* __restrict__ qkv,
                                         const T* __restrict__ y, const T* __restrict__ dy,
                                         const float* __restrict__ log_sums, float* __restrict__ dots,
                                         T* __restrict__ dqkv) {
  __shared__ Tiles tiles;
  const Work<T> work = work_of(s, qkv, true);
  const Rows<T> gradients{dy + work.in_y, work.y_stride};
  float log_sum[kEach], dot[kEach];
  read_rows(work, log_sums, log_sum, [&](int i) { return work.first() + row_of(i); });
  for (int i = 0; i < kEach; ++i) {
    const int query = work.first() + row_of(i);
    float products = 0;
    for (int d = static_cast<int>(threadIdx.x); query < work.context && d < work.head_width; d += kSide) {
      const std::size_t at = work.in_y + query * work.y_stride + d;
      products += to_float(y[at]) * to_float(dy[at]);
    }
    dot[i] = row_sum(products);
    const bool is_writer = threadIdx.x == 0 && blockIdx.y == 0 && query < work.context;
    if (is_writer) dots[work.in_rows() + query] = dot[i];
  }
  Part dq[kPieces];
  for (Part& piece : dq) clear(piece);
  for (int tile = 0; tile <= work.tile; ++tile) {
    Part scores, ds;
    multiply_rows(tiles, work, work.queries, work.first(), work.keys, tile * kTile, scores);
    multiply_rows(tiles, work, gradients, work.first(), work.values, tile * kTile, ds);
    each_element([&](int i, int j) {
      const bool is_seen = tile * kTile + column_of(j) <= work.first() + row_of(i);
      const float p = is_seen ? expf(scale * scores[i][j] - log_sum[i]) : 0.0f;
      ds[i][j] = p * (ds[i][j] - dot[i]);
    });
    add_weighted_rows(tiles, work, ds, work.keys, tile * kTile, dq);
  }
  write_rows(work, dq, dqkv + work.in_qkv, work.qkv_stride, [&](int) { return scale; });
}

// Block: a tile of keys, which stand for the rows here, and queries for the columns. dv = the sum over queries of p dy;
// dk = scale · the sum of ds q.
template <typename T>
__global__ void attention_key_gradients(AttentionShape s, float scale, const T* __restrict__ qkv,
                                        const T* __restrict__ dy, const float* __restrict__ log_sums,
                                        const float* __restrict__ dots, T* __restrict__ dqkv) {
  __shared__ Tiles tiles;
  const Work<T> work = work_of(s, qkv, false);
  const Rows<T> gradients{dy + work.in_y, work.y_stride};
  Part dk[kPieces], dv[kPieces];
  for (Part& piece : dk) clear(piece);
  for (Part& piece : dv) clear(piece);
  for (int tile = work.tile; tile < work.tiles; ++tile) {
    const auto query_of = [&](int j) { return tile * kTile + column_of(j); };
    float log_sum[kEach], dot[kEach];
    read_rows(work, log_sums, log_sum, query_of);
    read_rows(work, dots, dot, query_of);
    Part p, ds;
    multiply_rows(tiles, work, work.keys, work.first(), work.queries, tile * kTile, p);
    multiply_rows(tiles, work, work.values, work.first(), gradients, tile * kTile, ds);
    each_element([&](int i, int j) {
      const int query = query_of(j);
      const bool is_seen = work.first() + row_of(i) <= query && query < work.context;
      p[i][j] = is_seen ? expf(scale * p[i][j] - log_sum[j]) : 0.0f;
      ds[i][j] = p[i][j] * (ds[i][j] - dot[j]);
    });
    add_weighted_rows(tiles, work, p, gradients, tile * kTile, dv);
    add_weighted_rows(tiles, work, ds, work.queries, tile * kTile, dk);
  }
  write_rows(work, dk, dqkv + work.in_qkv + work.y_stride, work.qkv_stride, [&](int) { return scale; });
  write_rows(work, dv, dqkv + work.in_qkv + 2 * work.y_stride, work.qkv_stride, [](int) { return 1.0f; });
}

dim3 grid_of(const AttentionShape& s) {
  const std::size_t tiles = ceil_divide(static_cast<std::size_t>(s.context), kTile);
  const std::size_t heads = static_cast<std::size_t>(s.batch) * static_cast<std::size_t>(s.heads);
  const std::size_t pieces = ceil_divide(static_cast<std::size_t>(s.head_width()), kPieces * kTile);
  return {static_cast<unsigned>(tiles * heads), static_cast<unsigned>(pieces)};
}

float scale_of(const AttentionShape& s) { return 1.0f / std::sqrt(static_cast<float>(s.head_width())); }

// The number of (B, H, T).
std::size_t rows_of(const AttentionShape& s) { return static_cast<std::size_t>(s.rows()) * s.heads; }

constexpr dim3 kBlock(kSide, kSide);

}  // namespace

cudaError_t launch_attention_forward(const AttentionShape& shape, In qkv, Out y, float* storage, cudaStream_t stream) {
  return with_element(qkv.type(), [&]<typename T>(T) {
    attention_forward<T>
        <<<grid_of(shape), kBlock, 0, stream>>>(shape, scale_of(shape), elements<T>(qkv), elements<T>(y), storage);
    return cudaGetLastError();
  });
}

cudaError_t launch_attention_backward(const AttentionShape& shape, In qkv, In y, In dy, float* storage, Out dqkv,
                                      cudaStream_t stream) {
  float* const dots = storage + rows_of(shape);
  return with_element(qkv.type(), [&]<typename T>(T) {
    attention_query_gradient<T><<<grid_of(shape), kBlock, 0, stream>>>(
        shape, scale_of(shape), elements<T>(qkv), elements<T>(y), elements<T>(dy), storage, dots, elements<T>(dqkv));
    attention_key_gradients<T><<<grid_of(shape), kBlock, 0, stream>>>(
        shape, scale_of(shape), elements<T>(qkv), elements<T>(dy), storage, dots, elements<T>(dqkv));
    return cudaGetLastError();
  });
}

}  // namespace syncopate::worker
