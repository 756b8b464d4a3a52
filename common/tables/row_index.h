// RowIndex: maps the keys of the rows created so far to their places. A hash table with open addressing and linear
// probing (Knuth, The Art of Computer Programming, volume 3, section 6.4, algorithm L): mostly one cache line per
// look-up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/param_layout.h"

namespace syncopate {

class RowIndex {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  RowIndex();

  // Prefetches the memory in which `key` is looked up.
  void prefetch(RowKey key) const { __builtin_prefetch(&entries_[first_slot(key)]); }
  // Returns the place of `key`, or kNone.
  std::uint32_t find(RowKey key) const;
  // Assigns a place to `key`, which must have none. May throw std::bad_alloc, and then changes nothing.
  void add(RowKey key, std::uint32_t place);

  std::size_t size() const { return size_; }
  std::size_t bytes() const { return entries_.size() * sizeof(Entry); }
  std::vector<RowKey> keys() const;  // ascending

 private:
  struct Entry {
    RowKey key = 0;
    std::uint32_t place = kNone;
  };

  // Fibonacci hashing (same volume, section 6.4): spreads consecutive keys evenly.
  std::size_t first_slot(RowKey key) const { return (key * 0x9E3779B97F4A7C15ull) >> shift_; }
  // Returns the entry that holds `key`, or the free one in which it would be put.
  std::size_t entry_of(RowKey key) const;
  void grow();

  std::vector<Entry> entries_;  // a power of two, at most two thirds in use
  int shift_;                   // 64 less the logarithm of the number of entries
  std::size_t size_ = 0;
};

}  // namespace syncopate
