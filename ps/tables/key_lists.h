// KeyLists: the worker's record of the key lists that the shards hold for it, so that each list is sent only once.
// Pure.
//
// There are a few slots, the same here and at every shard, and the worker decides what is stored in which. So there is
// no miss to be answered, and no signature that two lists could share: the lists themselves are compared here. Memory:
// kKeyListSlots lists of at most rows_a_step keys for each table, here and, divided among the shards, there.
#pragma once

#include <algorithm>
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
    bool known = false;  // the shards hold the list in the slot; if not, it must be sent to them
  };

  // Returns where the shards find `keys` from now on. A new list takes a free slot. If there is none, it takes a slot
  // drawn at random: if lists recur in a cycle that is longer than there are slots, some are then still found, whereas
  // evicting the least recently used would find none. It never takes the slot of the last call, whose list a shard may
  // still need.
  Place place(RowKeys keys);

 private:
  std::size_t slot_for_new();

  std::array<std::vector<RowKey>, kKeyListSlots> lists_;
  std::size_t used_ = 0;  // slots
  std::size_t last_ = 0;  // slot of the last call
  Random random_{1};
};

inline KeyLists::Place KeyLists::place(RowKeys keys) {
  for (std::size_t slot = 0; slot < used_; ++slot) {
    if (std::ranges::equal(lists_[slot], keys)) return {.slot = last_ = slot, .known = true};
  }
  last_ = slot_for_new();
  lists_[last_].assign(keys.begin(), keys.end());
  return {.slot = last_, .known = false};
}

inline std::size_t KeyLists::slot_for_new() {
  if (used_ < kKeyListSlots) return used_++;
  const auto drawn = static_cast<std::size_t>(random_.below(kKeyListSlots - 1));
  return drawn < last_ ? drawn : drawn + 1;
}

}  // namespace syncopate::ps
