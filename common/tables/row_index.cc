#include "common/tables/row_index.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace syncopate {
namespace {

constexpr std::size_t kFewest = 64;

int shift_for(std::size_t entries) { return 64 - std::countr_zero(entries); }

}  // namespace

RowIndex::RowIndex() : entries_(kFewest), shift_(shift_for(kFewest)) {}

std::uint32_t RowIndex::find(RowKey key) const { return entries_[entry_of(key)].place; }

void RowIndex::add(RowKey key, std::uint32_t place) {
  assert(place != kNone && find(key) == kNone);
  if (3 * (size_ + 1) > 2 * entries_.size()) grow();
  entries_[entry_of(key)] = {key, place};
  ++size_;
}

std::vector<RowKey> RowIndex::keys() const {
  std::vector<RowKey> keys;
  keys.reserve(size_);
  for (const Entry& entry : entries_) {
    if (entry.place != kNone) keys.push_back(entry.key);
  }
  std::ranges::sort(keys);
  return keys;
}

std::size_t RowIndex::entry_of(RowKey key) const {
  const std::size_t mask = entries_.size() - 1;
  std::size_t at = first_slot(key);
  while (entries_[at].place != kNone && entries_[at].key != key) at = (at + 1) & mask;
  return at;
}

void RowIndex::grow() {
  std::vector<Entry> before(2 * entries_.size());
  std::swap(entries_, before);
  shift_ = shift_for(entries_.size());
  for (const Entry& entry : before) {
    if (entry.place != kNone) entries_[entry_of(entry.key)] = entry;
  }
}

}  // namespace syncopate
