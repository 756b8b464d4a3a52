#include "common/training_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

namespace syncopate {

std::span<float> TrainingState::piece(std::string_view name, Range range) {
  const auto part = parts_.find(name) != parts_.end() ? parts_.find(name) : parts_.try_emplace(std::string(name)).first;
  Piece& piece = part->second[range.begin];
  if (piece.size != range.size()) {
    piece.values = std::make_unique_for_overwrite<float[]>(range.size());
    piece.size = range.size();
  }
  piece.there = true;
  return {piece.values.get(), piece.size};
}

void TrainingState::put(std::string_view name, std::size_t begin, std::span<const float> values) {
  std::ranges::copy(values, piece(name, {begin, begin + values.size()}).begin());
}

std::vector<std::string> TrainingState::names() const {
  std::vector<std::string> names;
  for (const auto& [name, pieces] : parts_) {
    if (std::ranges::any_of(pieces, [](const auto& entry) { return entry.second.there; })) names.push_back(name);
  }
  return names;
}

std::vector<Range> TrainingState::pieces(std::string_view name) const {
  std::vector<Range> ranges;
  const auto part = parts_.find(name);
  if (part == parts_.end()) return ranges;
  for (const auto& [begin, piece] : part->second) {
    if (piece.there) ranges.push_back({begin, begin + piece.size});
  }
  return ranges;
}

bool TrainingState::overlaps(std::string_view name, Range range) const {
  const auto part = parts_.find(name);
  if (part == parts_.end()) return false;
  // They do not overlap each other: only the last that begins before the range's end can reach into it.
  for (auto piece = part->second.lower_bound(range.end); piece != part->second.begin();) {
    --piece;
    if (!piece->second.there || piece->second.size == 0) continue;
    return piece->first + piece->second.size > range.begin;
  }
  return false;
}

std::span<float> TrainingState::within(std::string_view name, Range range) {
  const auto part = parts_.find(name);
  if (part == parts_.end()) return {};
  auto piece = part->second.upper_bound(range.begin);
  while (piece != part->second.begin()) {
    --piece;
    if (!piece->second.there) continue;
    const std::size_t end = piece->first + piece->second.size;
    if (end < range.end) return {};
    return {piece->second.values.get() + (range.begin - piece->first), range.size()};
  }
  return {};
}

bool TrainingState::covers(std::string_view name, Range range) const {
  std::size_t reached = range.begin;
  for (const Range& piece : pieces(name)) {
    if (piece.begin <= reached) reached = std::max(reached, piece.end);
  }
  return reached >= range.end;
}

Status TrainingState::read(std::string_view name, Range range, std::span<float> to) const {
  assert(to.size() == range.size());
  if (!covers(name, range)) {
    return Status::data_loss(
        fmt::format("{} of the arena's elements {} to {} are not all there", name, range.begin, range.end));
  }
  for (const Range& piece : pieces(name)) {
    const std::size_t begin = std::max(piece.begin, range.begin), end = std::min(piece.end, range.end);
    if (begin >= end) continue;
    std::ranges::copy(values(name, piece).subspan(begin - piece.begin, end - begin),
                      to.begin() + static_cast<std::ptrdiff_t>(begin - range.begin));
  }
  return Status();
}

std::span<const float> TrainingState::values(std::string_view name, Range piece) const {
  const Piece& found = parts_.find(name)->second.find(piece.begin)->second;
  assert(found.there && found.size == piece.size());
  return {found.values.get(), found.size};
}

void TrainingState::clear() {
  step = 0;
  rows.clear();
  counts.clear();
  for (auto& [name, pieces] : parts_) {
    for (auto& [begin, piece] : pieces) piece.there = false;
  }
}

void TrainingState::merge(const TrainingState& other) {
  step = other.step;
  for (const auto& [table, of_table] : other.rows) rows[table] = of_table;
  for (const auto& [name, values] : other.counts) counts[name] = values;
  for (const std::string& name : other.names()) {
    for (const Range& piece : other.pieces(name)) put(name, piece.begin, other.values(name, piece));
  }
}

std::size_t TrainingState::bytes() const {
  std::size_t bytes = 0;
  for (const auto& [name, pieces] : parts_) {
    for (const auto& [begin, piece] : pieces) bytes += piece.there ? piece.size * sizeof(float) : 0;
  }
  for (const auto& [table, of_table] : rows) {
    bytes += of_table.values.size() * sizeof(float) + of_table.keys.size() * sizeof(RowKey);
  }
  return bytes;
}

}  // namespace syncopate
