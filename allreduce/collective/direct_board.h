// What a rank of a direct collective shows the others, in shared memory: which operation it is in. Each field has one
// writer, the board's owner; the doorbell alone is rung by all.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/transport/shm_doorbell.h"

namespace syncopate::allreduce {

// What all members of a circle must do alike.
struct DirectOperation {
  enum Kind : std::uint16_t { kBarrier = 1, kAllReduce = 2, kBroadcast = 3, kAllToAll = 4 };

  Kind kind{};
  std::uint16_t root = 0;    // of a broadcast
  std::uint32_t arena = 0;   // by the order of allocation
  std::uint64_t offset = 0;  // elements of the arena
  std::uint64_t length = 0;

  bool operator==(const DirectOperation&) const = default;
};

// A rank's place in one circle of ranks (all of them, or a pair). Operations of a circle are counted from 1. A rank
// writes operation n, enters n, does its part once everybody has entered, leaves n, and is done once everybody has
// left. Nobody comes to n + 2 before everybody has read what stands of n, so that two places for it are enough.
struct alignas(64) DirectPlace {
  std::atomic<std::uint32_t> entered;  // the last operation
  std::atomic<std::uint32_t> left;
  DirectOperation operations[2];  // by n % 2
};
static_assert(sizeof(DirectPlace) == 64, "one cache line tells all that a peer wants to know");

// Bytes of an arena of the board's owner.
struct DirectBytes {
  std::uint64_t arena = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

// Buffers up to this size are copied to the board, and everybody sums all of them itself: who needs nothing else of the
// others need not wait for them a second time.
inline constexpr std::size_t kDirectSmallFloats = 2048;

struct DirectBoard {
  ShmDoorbell doorbell;
  alignas(64) float small[2][kDirectSmallFloats];  // of operation n of all ranks: n % 2
  DirectPlace places[1];                           // [size]: with each peer; at one's own rank, with all

  // Behind the places, what is given in an all_to_all, by who takes it: of operation n of all ranks on side n % 2.
  std::span<DirectBytes> given(std::size_t side, std::size_t size) {
    return {reinterpret_cast<DirectBytes*>(places + size) + side * size, size};
  }

  static std::size_t bytes_for(int size) {
    const auto ranks = static_cast<std::size_t>(size);
    return sizeof(DirectBoard) + sizeof(DirectPlace) * (ranks - 1) + sizeof(DirectBytes) * 2 * ranks;
  }
};

}  // namespace syncopate::allreduce
