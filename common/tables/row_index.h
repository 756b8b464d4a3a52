// RowIndex: the place of each row of a table that has been made so far. A hash table with open addressing and linear
// probing (Knuth, The Art of Computer Programming, volume 3, section 6.4, algorithm L): one cache line a look-up,
// mostly.
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

  // Asks for the memory in which `key` stands, if it does.
  void prefetch(RowKey key) const { __builtin_prefetch(&entries_[home_of(key)]); }
  // The place of `key`, or kNone.
  std::uint32_t find(RowKey key) const;
  // Gives `key`, which has none, a place. May throw std::bad_alloc, and then changes nothing.
  void add(RowKey key, std::uint32_t place);

  std::size_t size() const { return size_; }
  std::size_t bytes() const { return entries_.size() * sizeof(Entry); }
  std::vector<RowKey> keys() const;  // ascending

 private:
  struct Entry {
    RowKey key = 0;
    std::uint32_t place = kNone;
  };

  // Fibonacci hashing (same volume, section 6.4): keys that follow each other are spread evenly.
  std::size_t home_of(RowKey key) const { return (key * 0x9E3779B97F4A7C15ull) >> shift_; }
  // The entry that holds `key`, or the free one that it would be put in.
  std::size_t entry_of(RowKey key) const;
  void grow();

  std::vector<Entry> entries_;  // a power of two, at most two thirds of them taken
  int shift_;                   // 64 less the number's logarithm
  std::size_t size_ = 0;
};

}  // namespace syncopate
