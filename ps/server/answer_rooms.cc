#include "ps/server/answer_rooms.h"

#include <algorithm>

namespace syncopate::ps {

Result<std::span<std::byte>> AnswerRooms::take(int worker, std::size_t table, std::size_t bytes, TimePoint deadline) {
  Room& room = rooms_[{worker, table}];
  SYNCOPATE_RETURN_IF_ERROR(transport_.wait(room.pending, deadline));
  if (room.memory.size() < bytes) {
    SYNCOPATE_ASSIGN_OR_RETURN(room.memory, transport_.allocate(std::max(bytes, 2 * room.memory.size())));
  }
  return room.memory.first(bytes);
}

}  // namespace syncopate::ps
