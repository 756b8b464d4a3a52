#include "worker/recommender/row_lookup.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace syncopate::worker {
namespace {

constexpr int kDigitBits = 11;  // a digit's counters stay in the first cache
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
constexpr int kKeyShift = 32;

std::uint32_t key_of(std::uint64_t entry) { return static_cast<std::uint32_t>(entry >> kKeyShift); }
std::uint32_t index_of(std::uint64_t entry) { return static_cast<std::uint32_t>(entry); }

}  // namespace

void RowLookup::sort() {
  std::uint32_t largest = 0;
  for (const std::uint64_t entry : sorted_) largest = std::max(largest, key_of(entry));
  other_.resize(sorted_.size());
  for (int bits = 0; bits < static_cast<int>(std::bit_width(largest)); bits += kDigitBits) {
    const auto digit = [&](std::uint64_t entry) { return entry >> (kKeyShift + bits) & (kDigits - 1); };
    std::array<std::uint32_t, kDigits> next{};
    for (const std::uint64_t entry : sorted_) ++next[digit(entry)];
    std::uint32_t sum = 0;
    for (std::uint32_t& count : next) sum += std::exchange(count, sum);
    for (const std::uint64_t entry : sorted_) other_[next[digit(entry)]++] = entry;
    std::swap(sorted_, other_);
  }
}

void RowLookup::set(std::span<const int> ids) {
  sorted_.resize(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    sorted_[i] = static_cast<std::uint64_t>(static_cast<std::uint32_t>(ids[i])) << kKeyShift | i;
  }
  sort();
  keys_.clear();
  begins_.clear();
  places_.resize(ids.size());
  askers_.resize(ids.size());
  for (std::size_t i = 0; i < sorted_.size(); ++i) {
    if (keys_.empty() || keys_.back() != key_of(sorted_[i])) {
      keys_.push_back(key_of(sorted_[i]));
      begins_.push_back(i);
    }
    askers_[i] = index_of(sorted_[i]);
    places_[askers_[i]] = static_cast<std::uint32_t>(keys_.size() - 1);
  }
  begins_.push_back(sorted_.size());
}

}  // namespace syncopate::worker
