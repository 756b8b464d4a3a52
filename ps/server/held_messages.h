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
  void keep_push(std::size_t chunk, Message message);
  void keep_rows(std::size_t table, Message message);

  // Releases the messages that the shard has used, or will not use any more.
  void let_go_of_pushes(const Shard& shard, std::size_t chunk);
  void let_go_of_pushes(const Shard& shard);
  void let_go_of_rows(const Shard& shard);
  void clear();

 private:
  struct Held {
    int worker = 0;
    Message message;
  };
  using Parts = std::vector<std::vector<Held>>;

  static void keep(Parts& parts, std::size_t part, Message message);

  Parts pushes_;  // by chunk
  Parts rows_;    // by table
};

}  // namespace syncopate::ps
