#include "ps/tables/key_lists.h"

#include <algorithm>

namespace syncopate::ps {

KeyLists::Place KeyLists::place(RowKeys keys) {
  for (std::size_t slot = 0; slot < used_; ++slot) {
    if (std::ranges::equal(lists_[slot], keys)) return {.slot = last_ = slot, .known = true};
  }
  last_ = slot_for_new();
  lists_[last_].assign(keys.begin(), keys.end());
  return {.slot = last_, .known = false};
}

std::size_t KeyLists::slot_for_new() {
  if (used_ < kKeyListSlots) return used_++;
  const auto drawn = static_cast<std::size_t>(random_.below(kKeyListSlots - 1));
  return drawn < last_ ? drawn : drawn + 1;
}

}  // namespace syncopate::ps
