// The layout of an endpoint's inbox in shared memory: a doorbell, and for every sender a ring of slots.
//
//   sender                                     receiver
//   waits until its next slot is kFree
//   writes header and where the payload lies
//   state = kFull, rings the doorbell    ->    finds the slot full
//                                              state = kTaken, uses the payload where it lies
//   finds the slot free: payload let go  <-    state = kFree, rings the sender's doorbell
//
// A slot has one writer at a time: the sender while it is free, the receiver from then on. The receiver may hold all
// slots of a sender, which then waits; a held slot is not full, so that it is not received again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/transport/shm_doorbell.h"
#include "common/transport/transport.h"

namespace syncopate {

inline constexpr std::uint32_t kSlotsPerSender = 64;

struct alignas(64) ShmSlot {
  enum State : std::uint32_t { kFree = 0, kFull = 1, kTaken = 2 };

  // Where the slot's parts lie. The receiver reads it once, since the sender can write it at any time.
  struct Place {
    std::uint32_t header_bytes = 0;
    std::uint64_t arena = 0;  // the sender's number of it
    std::uint64_t offset = 0;
    std::uint64_t payload_bytes = 0;
  };

  std::atomic<std::uint32_t> state;
  Place place;
  char header[kMaxWireHeaderBytes];
};

struct ShmInbox {
  std::uint64_t run;  // hash of run and group
  std::uint64_t senders;
  ShmDoorbell doorbell;  // rung when a message has arrived, or a payload of the owner was released
  ShmSlot slots[1];      // [senders][kSlotsPerSender]

  static std::size_t bytes_for(int senders) {
    return sizeof(ShmInbox) + sizeof(ShmSlot) * kSlotsPerSender * static_cast<std::size_t>(senders);
  }
  // Where a sender's slots begin, and how long they are.
  static std::size_t slots_begin(int sender) {
    return offsetof(ShmInbox, slots) + kSlotBytes * static_cast<std::size_t>(sender);
  }
  static constexpr std::size_t kSlotBytes = sizeof(ShmSlot) * kSlotsPerSender;  // of a sender
  ShmSlot& slot(int sender, std::uint64_t sequence) {
    return slots[static_cast<std::uint64_t>(sender) * kSlotsPerSender + sequence % kSlotsPerSender];
  }
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace syncopate
