// Device memory for folds over the rows of a matrix (column_fold.h), one at a time, which the order of a stream
// ensures.
#pragma once

#include <cstddef>

namespace syncopate::worker {

// A fold of few columns is divided among so many blocks, which depends on no GPU, so that the bits do not either. Two
// blocks on each of an H100's 132 multiprocessors, or an A100's 108, each thread with several rows under way, are
// enough to use all of the memory's bandwidth; more would make the last block's part longer.
inline constexpr unsigned kFoldBlocks = 256;
inline constexpr std::size_t kMostFoldBytes = 16;  // of a column's part

struct FoldSpace {
  unsigned* tickets = nullptr;  // of each block's columns: how many blocks are done; all zero between folds
  void* parts = nullptr;

  static constexpr std::size_t kTicketBytes = kFoldBlocks * sizeof(unsigned);
  static constexpr std::size_t kBytes = kTicketBytes + std::size_t{kFoldBlocks} * 32 * kMostFoldBytes;
  // Divides zeroed memory of kBytes, aligned to 16.
  static FoldSpace in(std::byte* memory) { return {reinterpret_cast<unsigned*>(memory), memory + kTicketBytes}; }
};

}  // namespace syncopate::worker
