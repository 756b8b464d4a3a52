// HeldMessages: keeps the messages whose gradients a shard still needs, because it reads the gradients in place. One
// thread.
#pragma once

#include <cstddef>
#include <vector>

#include "common/transport/transport.h"
#include "ps/server/shard.h"

namespace syncopate::ps {

class HeldMessages {
 public:
  explicit HeldMessages(int workers) : workers_(workers) {}

  void keep_push(std::size_t chunk, Message message);
  void keep_rows(std::size_t table, Message message);

  // Releases the messages that the shard has used, or will not use any more.
  void let_go_of_pushes(const Shard& shard, std::size_t chunk);
  void let_go_of_pushes(const Shard& shard);
  void let_go_of_rows(const Shard& shard);
  void clear();

 private:
  std::size_t place_of(int worker, std::size_t part) const {
    return part * static_cast<std::size_t>(workers_) + static_cast<std::size_t>(worker);
  }
  void keep(std::vector<Message>& messages, std::size_t part, Message message) const;

  int workers_;
  std::vector<Message> pushes_;  // by chunk, then worker
  std::vector<Message> rows_;    // by table, then worker
};

}  // namespace syncopate::ps
