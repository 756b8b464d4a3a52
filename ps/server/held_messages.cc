#include "ps/server/held_messages.h"

#include <algorithm>
#include <utility>

namespace syncopate::ps {

void HeldMessages::keep_push(std::size_t chunk, Message message) { keep(pushes_, chunk, std::move(message)); }
void HeldMessages::keep_rows(std::size_t table, Message message) { keep(rows_, table, std::move(message)); }

void HeldMessages::keep(std::vector<Message>& messages, std::size_t part, Message message) const {
  const std::size_t place = place_of(message.from(), part);
  messages.resize(std::max(messages.size(), place + 1));
  messages[place] = std::move(message);
}

void HeldMessages::let_go_of_pushes(const Shard& shard, std::size_t chunk) {
  for (int worker = 0; worker < workers_; ++worker) {
    const std::size_t place = place_of(worker, chunk);
    if (place < pushes_.size() && !shard.has_pending_gradient(worker, chunk)) pushes_[place] = Message();
  }
}

void HeldMessages::let_go_of_pushes(const Shard& shard) {
  for (std::size_t chunk = 0; chunk < shard.chunks(); ++chunk) let_go_of_pushes(shard, chunk);
}

void HeldMessages::let_go_of_rows(const Shard& shard) {
  for (std::size_t table = 0; table < shard.tables(); ++table) {
    for (int worker = 0; worker < workers_; ++worker) {
      const std::size_t place = place_of(worker, table);
      if (place < rows_.size() && !shard.has_pending_rows(worker, table)) rows_[place] = Message();
    }
  }
}

void HeldMessages::clear() {
  pushes_.clear();
  rows_.clear();
}

}  // namespace syncopate::ps
