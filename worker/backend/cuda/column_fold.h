// Folds over the rows of a row-major matrix, column by column, in one launch: sums, or moments. For kernels only.
//
// Each block folds a part of the rows of some columns. The block that ends last, which a ticket tells, folds the parts
// (threadFenceReduction in NVIDIA's CUDA samples). Rows and parts are folded in an order that depends only on the
// matrix's shape, whichever block that is: so the bits are always the same. The alternatives lose: one block for each
// group of columns leaves most multiprocessors idle where there are 16 or 64 channels; a cluster's shared memory
// reaches 16 multiprocessors, and exists from Hopper on.
#pragma once

#include <algorithm>
#include <cstddef>

#include "worker/backend/cuda/fold_space.h"
#include "worker/backend/cuda/kernel_grid.h"

namespace syncopate::worker {

// Calls take(row, load(row)) for the rows `first`, first + step, ... before `end`, of a matrix of such elements.
template <typename Element = float, typename Load, typename Take>
__device__ void each_row(std::size_t first, std::size_t end, std::size_t step, Load load, Take take) {
  constexpr unsigned kAhead = kRowsAhead<Element>;
  std::size_t row = first;
  for (; row + (kAhead - 1) * step < end; row += kAhead * step) {
    decltype(load(row)) loaded[kAhead];
#pragma unroll
    for (unsigned i = 0; i < kAhead; ++i) loaded[i] = load(row + i * step);
#pragma unroll
    for (unsigned i = 0; i < kAhead; ++i) take(row + i * step, loaded[i]);
  }
  for (; row < end; row += step) take(row, load(row));
}

// How a matrix is divided: block (c, p) has part p of the rows of its columns.
class ColumnFold {
 public:
  ColumnFold(std::size_t rows, int columns, const FoldSpace& space) : rows_(rows), columns_(columns), space_(space) {
    const dim3 of_threads = matrix_block(columns);
    const std::size_t wanted =
        std::max(kFoldBlocks / ceil_divide(static_cast<std::size_t>(columns), of_threads.x), std::size_t{1});
    const std::size_t least = std::size_t{2} * kRowsAhead<float> * of_threads.y;
    part_rows_ = std::max(ceil_divide(rows, wanted), least);
  }

  dim3 grid() const {
    const std::size_t parts = std::max(ceil_divide(rows_, part_rows_), std::size_t{1});
    return {static_cast<unsigned>(ceil_divide(static_cast<std::size_t>(columns_), block().x)),
            static_cast<unsigned>(parts)};
  }
  dim3 block() const { return matrix_block(columns_); }

  // Calls finish(column, value) in one thread for each column, with `of_rows(column, first, end, step)` over all rows
  // merged: that is a thread's share, the rows first, first + step, ... before `end`. `Value` has none(), and
  // merge(other). `shared` is shared memory.
  template <typename Value>
  struct Shared {
    Value of_threads[kThreads];
    bool is_last;
  };
  template <typename Value, typename OfRows, typename Finish>
  __device__ void run(Shared<Value>& shared, OfRows of_rows, Finish finish) const {
    static_assert(sizeof(Value) <= kMostFoldBytes);
    const int column = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    const bool has_column = column < columns_;
    const std::size_t begin = blockIdx.y * part_rows_;
    const std::size_t end = begin + part_rows_ < rows_ ? begin + part_rows_ : rows_;
    Value value = has_column ? of_rows(column, begin + threadIdx.y, end, blockDim.y) : Value::none();
    merge_threads(shared, value);
    if (gridDim.y > 1) {
      Value* const parts = static_cast<Value*>(space_.parts);
      if (threadIdx.y == 0 && has_column) parts[static_cast<std::size_t>(blockIdx.y) * columns_ + column] = value;
      if (!comes_last(shared.is_last)) return;
      value = Value::none();
      if (has_column) {
        each_row(
            threadIdx.y, gridDim.y, blockDim.y, [&](std::size_t part) { return parts[part * columns_ + column]; },
            [&](std::size_t, const Value& of_part) { value.merge(of_part); });
      }
      merge_threads(shared, value);
    }
    if (threadIdx.y == 0 && has_column) finish(column, value);
  }

 private:
  // Merges the values of each column's threads into that of the first, in pairs.
  template <typename Value>
  __device__ static void merge_threads(Shared<Value>& shared, Value& value) {
    const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
    shared.of_threads[thread] = value;
    for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.y < half) shared.of_threads[thread].merge(shared.of_threads[thread + half * blockDim.x]);
    }
    value = shared.of_threads[thread];
  }

  // Whether all other blocks of these columns are done; then what they have written can be read. The ticket returns to
  // zero by itself.
  __device__ bool comes_last(bool& shared_answer) const {
    __threadfence();  // what this block has written comes before its ticket
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
      shared_answer = atomicInc(&space_.tickets[blockIdx.x], gridDim.y - 1) == gridDim.y - 1;
    }
    __syncthreads();
    __threadfence();  // and the others' tickets come before what is read now
    return shared_answer;
  }

  std::size_t rows_, part_rows_;
  int columns_;
  FoldSpace space_;
};

// Sums of one or two things.
struct Sum {
  float value;
  __device__ static Sum none() { return {0}; }
  __device__ void merge(const Sum& other) { value += other.value; }
};
struct SumPair {
  float first, second;
  __device__ static SumPair none() { return {0, 0}; }
  __device__ void merge(const SumPair& other) {
    first += other.first;
    second += other.second;
  }
};

// The mean of some values, and the sum of their squared distances from it, with no cancellation.
struct Moments {
  float count, mean, squares;
  __device__ static Moments none() { return {0, 0, 0}; }
  // Welford 1962, "Note on a method for calculating corrected sums of squares and products".
  __device__ void add(float value) {
    count += 1;
    const float difference = value - mean;
    mean += difference / count;
    squares += difference * (value - mean);
  }
  // Chan, Golub & LeVeque 1983, "Algorithms for computing the sample variance", equation 2.1.
  __device__ void merge(const Moments& other) {
    if (other.count == 0) return;
    const float total = count + other.count, difference = other.mean - mean, share = other.count / total;
    mean += difference * share;
    squares += other.squares + difference * difference * count * share;
    count = total;
  }
};

}  // namespace syncopate::worker
