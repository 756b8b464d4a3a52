// AnswerRooms: memory that a shard sends rows from: for each worker and table as much as its largest answer so far
// took, and less than twice that in all. Such an answer is made for one worker; the weights of chunks are lent to all
// from where they lie.
#pragma once

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
  // `transport` outlives this object.
  explicit AnswerRooms(Transport& transport) : transport_(transport) {}

  // Room for `bytes`, once what was sent from there last has been let go: a worker that asks again has read it. Fails
  // with resource exhausted, and as Transport::wait does.
  Result<std::span<std::byte>> take(int worker, std::size_t table, std::size_t bytes, TimePoint deadline);
  // Of what is sent from there.
  PendingSends& pending(int worker, std::size_t table) { return rooms_[{worker, table}].pending; }

 private:
  struct Room {
    std::span<std::byte> memory;
    PendingSends pending;
  };

  Transport& transport_;
  std::map<std::pair<int, std::size_t>, Room> rooms_;
};

}  // namespace syncopate::ps
