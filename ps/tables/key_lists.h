// KeyLists: the worker's account of the key lists that the shards hold for it, so that a list is sent once. Pure.
//
// There are a few slots, the same here and at every shard, and it is the worker who says what is put where. So there is
// no miss to be answered and no signature that two lists could share: what is compared here is the lists themselves.
// Memory: kKeyListSlots lists of at most rows_a_step keys for each table, here and, shared among the shards, there.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "common/param_layout.h"
#include "common/random.h"

namespace syncopate::ps {

inline constexpr std::size_t kKeyListSlots = 16;

class KeyLists {
 public:
  struct Place {
    std::size_t slot = 0;
    bool known = false;  // the shards hold the list there; if not, it is to be sent to them, for this slot
  };

  // Where the shards find `keys` from now on. A new list takes a free slot, and where there is none another one's,
  // drawn at random: of a cycle of lists that is longer than there are slots some are then still found, where to give
  // up the least recently used would find none. Never that of the last call, whose list a shard may still need.
  Place place(RowKeys keys);

 private:
  std::size_t slot_for_new();

  std::array<std::vector<RowKey>, kKeyListSlots> lists_;
  std::size_t used_ = 0;  // slots
  std::size_t last_ = 0;  // slot of the last call
  Random random_{1};
};

}  // namespace syncopate::ps
