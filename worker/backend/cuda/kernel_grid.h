// How kernels on elements and on matrices are divided into blocks.
#pragma once

#include <algorithm>
#include <cstddef>

namespace syncopate::worker {

inline constexpr unsigned kThreads = 256;  // per block of elements
// A few times what any GPU runs at once; loops do the rest.
inline constexpr std::size_t kMostBlocks = 8192;

// A block of matrix kernels: neighbours in a warp are neighbours in a row.
inline constexpr unsigned kBlockColumns = 32;
inline constexpr unsigned kBlockRows = 8;

inline std::size_t ceil_divide(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

inline unsigned blocks_for(std::size_t count, std::size_t a_block) {
  return static_cast<unsigned>(std::min(ceil_divide(count, a_block), kMostBlocks));
}

inline unsigned column_blocks(int columns) {
  return (static_cast<unsigned>(columns) + kBlockColumns - 1) / kBlockColumns;
}

// Rows are summed in at most kMostParts parts, each of at least kLeastRows.
inline constexpr std::size_t kMostParts = 128;
inline constexpr std::size_t kLeastRows = 64;

}  // namespace syncopate::worker
