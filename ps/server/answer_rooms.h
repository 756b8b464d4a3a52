// AnswerRooms: the memory that a shard sends rows from. For each worker and table it holds less than twice what the
// largest response so far took. Such a response is made for one worker, whereas the weights of chunks are sent to all
// workers from where they lie.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>

#include "common/clock.h"
#include "common/status.h"
#include "common/transport/transport.h"

namespace syncopate::ps {

class AnswerRooms {
 public:
  // `transport` must outlive this object.
  explicit AnswerRooms(Transport& transport) : transport_(transport) {}

  // Returns memory for `bytes`, once what was last sent from there has been released: a worker that asks again has read
  // it. Fails with resource exhausted, and as Transport::wait does.
  Result<std::span<std::byte>> take(int worker, std::size_t table, std::size_t bytes, TimePoint deadline);
  // The counter of sends from that memory.
  PendingSends& pending(int worker, std::size_t table) { return rooms_[{worker, table}].pending; }

 private:
  struct Room {
    std::span<std::byte> memory;
    PendingSends pending;
  };

  Transport& transport_;
  std::map<std::pair<int, std::size_t>, Room> rooms_;
};

inline Result<std::span<std::byte>> AnswerRooms::take(int worker, std::size_t table, std::size_t bytes,
                                                      TimePoint deadline) {
  Room& room = rooms_[{worker, table}];
  SYNCOPATE_RETURN_IF_ERROR(transport_.wait(room.pending, deadline));
  if (room.memory.size() < bytes) {
    SYNCOPATE_ASSIGN_OR_RETURN(room.memory, transport_.allocate(std::max(bytes, 2 * room.memory.size())));
  }
  return room.memory.first(bytes);
}

}  // namespace syncopate::ps
