#include "allreduce/collective/shared_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

namespace syncopate::allreduce {
namespace {

// A float holds so many bits exactly, with room to spare.
constexpr std::size_t kPieceBits = 16;
constexpr std::size_t kPieces = 64 / kPieceBits;

void write_word(std::uint64_t word, std::span<float> place) {
  for (std::size_t piece = 0; piece < kPieces; ++piece) {
    place[piece] = static_cast<float>((word >> (kPieceBits * piece)) & ((1u << kPieceBits) - 1));
  }
}

// Returns none unless every piece is a whole number of kPieceBits bits, as each is that a rank of this run has written.
std::optional<std::uint64_t> read_word(std::span<const float> place) {
  std::uint64_t word = 0;
  for (std::size_t piece = 0; piece < kPieces; ++piece) {
    const float value = place[piece];
    if (!(value >= 0 && value < static_cast<float>(1u << kPieceBits)) || value != std::trunc(value)) {
      return std::nullopt;
    }
    word |= static_cast<std::uint64_t>(place[piece]) << (kPieceBits * piece);
  }
  return word;
}

// Gives every rank the sum of all ranks' values. Ranks beyond the largest power of two add theirs to another's first,
// and take all in the end, when they themselves have zeros to add.
Status sum_by_pairs(Collective& collective, std::span<float> values, TimePoint deadline) {
  const int rank = collective.rank();
  const int core = static_cast<int>(std::bit_floor(static_cast<unsigned>(collective.size())));
  const bool is_beyond = rank >= core;
  const int folded = is_beyond ? rank - core : rank + core;
  const bool has_folded = folded < collective.size();
  if (has_folded) SYNCOPATE_RETURN_IF_ERROR(collective.reduce_pair(values, folded, deadline));
  for (int distance = 1; !is_beyond && distance < core; distance *= 2) {
    SYNCOPATE_RETURN_IF_ERROR(collective.reduce_pair(values, rank ^ distance, deadline));
  }
  if (!has_folded) return Status();
  if (is_beyond) std::ranges::fill(values, 0.0f);
  return collective.reduce_pair(values, folded, deadline);
}

}  // namespace

// Each rank writes what it says to its own place of a buffer that is zero elsewhere: the sum over all ranks shows
// everybody everything.
Result<std::vector<std::vector<std::uint64_t>>> share_words(Collective& collective, std::span<const std::uint64_t> own,
                                                            TimePoint deadline) {
  const auto size = static_cast<std::size_t>(collective.size());
  const auto rank = static_cast<std::size_t>(collective.rank());
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<float> all, collective.allocate(kPieces * own.size() * size));
  const auto place_of = [&](std::size_t member, std::size_t word) {
    return all.subspan(kPieces * (member * own.size() + word), kPieces);
  };
  for (std::size_t word = 0; word < own.size(); ++word) write_word(own[word], place_of(rank, word));
  SYNCOPATE_RETURN_IF_ERROR(sum_by_pairs(collective, all, deadline));
  std::vector<std::vector<std::uint64_t>> said(size);
  for (std::size_t member = 0; member < size; ++member) {
    for (std::size_t word = 0; word < own.size(); ++word) {
      const std::optional<std::uint64_t> read = read_word(place_of(member, word));
      if (!read) return Status::data_loss(fmt::format("rank {} has said what is no number", member));
      said[member].push_back(*read);
    }
  }
  return said;
}

}  // namespace syncopate::allreduce
