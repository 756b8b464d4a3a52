// How kernels on elements and on matrices are divided into blocks.
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>

namespace syncopate::worker {

inline constexpr unsigned kThreads = 256;  // per block of elements
// A few times what any GPU runs at once; loops do the rest.
inline constexpr std::size_t kMostBlocks = 8192;

// At most, of a block of matrix kernels: neighbours in a warp are neighbours in a row.
inline constexpr unsigned kBlockColumns = 32;

inline std::size_t ceil_divide(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

inline unsigned blocks_for(std::size_t count, std::size_t a_block) {
  return static_cast<unsigned>(std::min(ceil_divide(count, a_block), kMostBlocks));
}

inline unsigned column_blocks(int columns) {
  return (static_cast<unsigned>(columns) + kBlockColumns - 1) / kBlockColumns;
}

// kThreads threads: at most kBlockColumns columns, and few where the matrix has few, so that no thread has none.
inline dim3 matrix_block(int columns) {
  unsigned x = 1;
  while (x < kBlockColumns && x < static_cast<unsigned>(columns)) x *= 2;
  return {x, kThreads / x};
}
// Threads of matrix kernels work ahead on so many rows, whose loads do not wait for one another. Elements of 16 bits
// take twice as many to keep the memory as busy.
template <typename Element>
inline constexpr unsigned kRowsAhead = 16 / sizeof(Element);

// So many blocks that each thread has kRowsAhead rows of one column, or more of a large matrix.
template <typename Element>
dim3 matrix_grid(std::size_t rows, int columns) {
  const dim3 block = matrix_block(columns);
  return {static_cast<unsigned>(ceil_divide(static_cast<std::size_t>(columns), block.x)),
          blocks_for(rows, std::size_t{kRowsAhead<Element>} * block.y)};
}

}  // namespace syncopate::worker
