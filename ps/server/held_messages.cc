#include "ps/server/held_messages.h"

#include <algorithm>
#include <utility>

namespace syncopate::ps {

void HeldMessages::keep_push(std::size_t chunk, Message message) { keep(pushes_, chunk, std::move(message)); }
void HeldMessages::keep_rows(std::size_t table, Message message) { keep(rows_, table, std::move(message)); }

void HeldMessages::keep(Parts& parts, std::size_t part, Message message) {
  parts.resize(std::max(parts.size(), part + 1));
  const int worker = message.from();
  parts[part].push_back({worker, std::move(message)});
}

void HeldMessages::let_go_of_pushes(const Shard& shard, std::size_t chunk) {
  if (chunk >= pushes_.size()) return;
  std::erase_if(pushes_[chunk], [&](const Held& held) { return !shard.has_pending_gradient(held.worker, chunk); });
}

void HeldMessages::let_go_of_pushes(const Shard& shard) {
  for (std::size_t chunk = 0; chunk < pushes_.size(); ++chunk) let_go_of_pushes(shard, chunk);
}

void HeldMessages::let_go_of_rows(const Shard& shard) {
  for (std::size_t table = 0; table < rows_.size(); ++table) {
    std::erase_if(rows_[table], [&](const Held& held) { return !shard.has_pending_rows(held.worker, table); });
  }
}

void HeldMessages::clear() {
  pushes_.clear();
  rows_.clear();
}

}  // namespace syncopate::ps
