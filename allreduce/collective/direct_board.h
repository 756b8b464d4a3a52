// DirectBoard: what a rank of a direct collective shows the others in shared memory: the operation that it is in. Only
// the board's owner writes its fields; any rank rings the doorbell.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/transport/shm_doorbell.h"

namespace syncopate::allreduce {

// An operation, which must be the same on all members of a group (all ranks, or a pair).
struct DirectOperation {
  enum Kind : std::uint16_t {
    kBarrier = 1,
    kAllReduce = 2,
    kBroadcast = 3,
    kAllToAll = 4,
    kReduceScatter = 5,
    kAllGather = 6
  };

  Kind kind{};
  std::uint16_t root = 0;    // of a broadcast
  std::uint32_t arena = 0;   // index, in order of allocation
  std::uint64_t offset = 0;  // elements of the arena
  std::uint64_t length = 0;

  bool operator==(const DirectOperation&) const = default;
};

// A rank's status in one group of ranks (all of them, or a pair). Operations of a group are counted from 1. A rank
// writes operation n, enters n, does its part once all ranks have entered, leaves n, and is done once all have left. No
// rank starts n + 2 before all have read the entry of n, so two entries are enough.
struct alignas(64) DirectPlace {
  std::atomic<std::uint32_t> entered;  // number of the last operation
  std::atomic<std::uint32_t> left;
  DirectOperation operations[2];  // by n % 2
};
static_assert(sizeof(DirectPlace) == 64, "one cache line tells all that a peer wants to know");

// A range of bytes in an arena of the board's owner.
struct DirectBytes {
  std::uint64_t arena = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

// Buffers up to this size are copied to the board, and every rank sums all of them itself. A rank needs nothing else of
// the others, so it need not wait for them a second time.
inline constexpr std::size_t kDirectSmallFloats = 2048;

struct DirectBoard {
  ShmDoorbell doorbell;
  alignas(64) float small[2][kDirectSmallFloats];  // of operation n of all ranks: index n % 2
  DirectPlace places[1];                           // [size]: one with each peer; at the own rank, with all ranks

  // After the places: what is given in an all_to_all, by receiving rank. Operation n of all ranks uses side n % 2.
  std::span<DirectBytes> given(std::size_t side, std::size_t size) {
    return {reinterpret_cast<DirectBytes*>(places + size) + side * size, size};
  }

  static std::size_t bytes_for(int size) {
    const auto ranks = static_cast<std::size_t>(size);
    return sizeof(DirectBoard) + sizeof(DirectPlace) * (ranks - 1) + sizeof(DirectBytes) * 2 * ranks;
  }
};

}  // namespace syncopate::allreduce
