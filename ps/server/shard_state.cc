#include "ps/server/shard_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace syncopate::ps {
namespace {

// What stands before the clocks in an entry of a chunk, and of a table's part.
constexpr std::size_t kChunkCounts = 6;
constexpr std::size_t kTableCounts = 2;

std::int64_t bits_of(float value) { return std::bit_cast<std::int32_t>(value); }
float float_of(std::int64_t bits) { return std::bit_cast<float>(static_cast<std::int32_t>(bits)); }

// A clock is never negative: below zero it is that of a worker that was away.
void append(const Clocks& clocks, std::vector<std::int64_t>& entry) {
  for (std::size_t i = 0; i < clocks.pushes.size(); ++i) {
    entry.push_back(clocks.away[i] ? -1 - clocks.pushes[i] : clocks.pushes[i]);
  }
}

Clocks clocks_in(std::span<const std::int64_t> entry, int workers) {
  Clocks clocks(workers);
  for (std::size_t i = 0; i < clocks.pushes.size(); ++i) {
    // A worker that the job did not have until now.
    const std::int64_t value = i < entry.size() ? entry[i] : -1;
    clocks.away[i] = value < 0;
    clocks.pushes[i] = value < 0 ? -1 - value : value;
  }
  return clocks;
}

// Each worker's further one.
void combine(const Clocks& other, Clocks& clocks) {
  for (std::size_t i = 0; i < clocks.pushes.size(); ++i) {
    clocks.pushes[i] = std::max(clocks.pushes[i], other.pushes[i]);
    clocks.away[i] = clocks.away[i] && other.away[i];
  }
}

Clocks all_at(std::int64_t clock, int workers) {
  Clocks clocks(workers);
  std::ranges::fill(clocks.pushes, clock);
  return clocks;
}

ChunkCounts counts_of_piece(Range piece, int workers, std::int64_t period, const TrainingState& state) {
  ChunkCounts counts;
  const auto entry = state.counts.find(shard_part::chunk_at(piece.begin));
  if (entry == state.counts.end() || entry->second.size() < kChunkCounts) {
    counts.version = state.step / period;
    counts.clocks = all_at(counts.version, workers);
    return counts;
  }
  const std::span<const std::int64_t> values = entry->second;
  counts.version = values[0];
  counts.summed = values[1];
  counts.summed_weight = float_of(values[2]);
  counts.summed_rate = float_of(values[3]);
  counts.staleness_count = values[4];
  counts.staleness = std::bit_cast<double>(values[5]);
  counts.clocks = clocks_in(values.subspan(kChunkCounts), workers);
  return counts;
}

void combine(const ChunkCounts& other, ChunkCounts& counts) {
  counts.version = std::max(counts.version, other.version);
  if (other.summed_weight > counts.summed_weight) {
    counts.summed = other.summed;
    counts.summed_weight = other.summed_weight;
    counts.summed_rate = other.summed_rate;
  }
  if (other.staleness_count > counts.staleness_count) {
    counts.staleness_count = other.staleness_count;
    counts.staleness = other.staleness;
  }
  combine(other.clocks, counts.clocks);
}

// A state may come from a file that anybody has written: what is counted on from must leave room to count.
constexpr std::int64_t kMostCount = std::int64_t{1} << 53;
constexpr std::int64_t kMostSummed = std::int64_t{1} << 30;

bool is_count(std::int64_t value) { return value >= 0 && value <= kMostCount; }

Status cannot_be(const std::string& what) { return Status::data_loss("what servers have counted: " + what); }

Status check(const Clocks& clocks) {
  const auto wrong = std::ranges::find_if_not(clocks.pushes, is_count);
  return wrong == clocks.pushes.end() ? Status() : cannot_be(fmt::format("{} pushes of a worker", *wrong));
}

Status check(const ChunkCounts& counts) {
  if (!is_count(counts.version)) return cannot_be(fmt::format("{} updates", counts.version));
  const auto is_amount = [](double value) { return std::isfinite(value) && value >= 0; };
  if (counts.summed < 0 || counts.summed > kMostSummed || !is_amount(counts.summed_weight) ||
      !is_amount(counts.summed_rate)) {
    return cannot_be(fmt::format("a sum of {} gradients of the weight {} at the rate {}", counts.summed,
                                 counts.summed_weight, counts.summed_rate));
  }
  if (!is_count(counts.staleness_count) || !is_amount(counts.staleness)) {
    return cannot_be(fmt::format("a mean staleness of {} of {}", counts.staleness, counts.staleness_count));
  }
  return check(counts.clocks);
}

std::vector<Range> pieces_within(Range range, const TrainingState& state) {
  std::vector<Range> pieces = state.pieces(state_part::kWeights);
  std::erase_if(pieces, [&](const Range& piece) { return piece.end <= range.begin || piece.begin >= range.end; });
  return pieces;
}

// Both ascending, of keys that differ.
void merge_rows(const RowsState& more, RowsState& rows) {
  RowsState both{.row_floats = more.row_floats, .keys = {}, .values = {}};
  both.keys.reserve(rows.keys.size() + more.keys.size());
  both.values.reserve(rows.values.size() + more.values.size());
  std::size_t i = 0, j = 0;
  while (i < rows.keys.size() || j < more.keys.size()) {
    const bool is_more = i == rows.keys.size() || (j < more.keys.size() && more.keys[j] < rows.keys[i]);
    const RowsState& from = is_more ? more : rows;
    const std::size_t at = is_more ? j++ : i++;
    both.keys.push_back(from.keys[at]);
    const auto values = from.values.begin() + static_cast<std::ptrdiff_t>(at * both.row_floats);
    both.values.insert(both.values.end(), values, values + static_cast<std::ptrdiff_t>(both.row_floats));
  }
  rows = std::move(both);
}

}  // namespace

std::string shard_part::chunk_at(std::size_t begin) { return fmt::format("chunk@{}", begin); }
std::string shard_part::table_on(std::size_t table, std::size_t shard) {
  return fmt::format("table{}@{}", table, shard);
}

std::vector<std::int64_t> clocks_to_go_on_with(const Clocks& clocks, const Membership& members) {
  std::int64_t slowest = std::numeric_limits<std::int64_t>::max();
  for (int worker = 0; worker < members.workers(); ++worker) {
    const auto i = static_cast<std::size_t>(worker);
    if (members.is_live(worker) && !clocks.away[i]) slowest = std::min(slowest, clocks.pushes[i]);
  }
  std::vector<std::int64_t> taken_up = clocks.pushes;
  if (slowest == std::numeric_limits<std::int64_t>::max()) return taken_up;
  for (int worker = 0; worker < members.workers(); ++worker) {
    const auto i = static_cast<std::size_t>(worker);
    if (members.is_live(worker) && clocks.away[i]) taken_up[i] = std::max(taken_up[i], slowest);
  }
  return taken_up;
}

void put_chunk_counts(std::size_t begin, const ChunkCounts& counts, TrainingState& state) {
  std::vector<std::int64_t>& entry = state.counts[shard_part::chunk_at(begin)];
  entry = {counts.version,
           counts.summed,
           bits_of(counts.summed_weight),
           bits_of(counts.summed_rate),
           counts.staleness_count,
           std::bit_cast<std::int64_t>(counts.staleness)};
  append(counts.clocks, entry);
}

Result<ChunkCounts> chunk_counts(Range range, int workers, std::int64_t period, const TrainingState& state) {
  const std::vector<Range> pieces = pieces_within(range, state);
  if (pieces.empty()) return ChunkCounts{.clocks = Clocks(workers)};
  ChunkCounts counts = counts_of_piece(pieces[0], workers, period, state);
  for (const Range& piece : std::span(pieces).subspan(1)) {
    const ChunkCounts more = counts_of_piece(piece, workers, period, state);
    SYNCOPATE_RETURN_IF_ERROR(check(more));
    combine(more, counts);
  }
  SYNCOPATE_RETURN_IF_ERROR(check(counts));
  return counts;
}

std::optional<std::int64_t> pushes_applied(const std::map<std::string, std::vector<std::int64_t>>& counts,
                                           int pushes_an_update) {
  std::optional<std::int64_t> least;
  const auto look_at = [&](std::int64_t pushes) { least = std::min(least.value_or(pushes), pushes); };
  for (const auto& [name, entry] : counts) {
    const bool is_chunk = name.starts_with("chunk@") && entry.size() >= kChunkCounts;
    const bool is_table = name.starts_with("table") && entry.size() >= kTableCounts;
    if (is_chunk && is_count(entry[0]) && is_count(entry[1])) look_at(entry[0] * pushes_an_update + entry[1]);
    if (is_table && is_count(entry[1])) look_at(entry[1] * pushes_an_update);
  }
  return least;
}

Status read_sum(Range range, float summed_weight, std::span<float> sum, const TrainingState& state) {
  for (const Range& piece : pieces_within(range, state)) {
    const float weight = counts_of_piece(piece, 0, 1, state).summed_weight;
    if (weight == 0) continue;
    const Range part{std::max(piece.begin, range.begin), std::min(piece.end, range.end)};
    const std::span<float> of_part = slice(sum, {part.begin - range.begin, part.end - range.begin});
    SYNCOPATE_RETURN_IF_ERROR(state.read(shard_part::kSum, part, of_part));
    if (weight == summed_weight) continue;
    for (float& value : of_part) value *= summed_weight / weight;
  }
  return Status();
}

void put_table_counts(std::size_t table, std::size_t shard, std::size_t shards, const TableCounts& counts,
                      TrainingState& state) {
  std::vector<std::int64_t>& entry = state.counts[shard_part::table_on(table, shard)];
  entry = {static_cast<std::int64_t>(shards), counts.version};
  append(counts.clocks, entry);
}

std::vector<std::int64_t> table_updates(std::size_t table, const TrainingState& state) {
  std::vector<std::int64_t> updates;
  for (std::size_t shard = 0;; ++shard) {
    const auto counts = state.counts.find(shard_part::table_on(table, shard));
    if (counts == state.counts.end() || counts->second.size() < kTableCounts) return updates;
    updates.push_back(counts->second[1]);
  }
}

Result<TableCounts> table_counts(std::size_t table, std::size_t shard, std::size_t shards, int workers,
                                 const TrainingState& state) {
  const auto read = [&](const std::vector<std::int64_t>& entry) -> Result<TableCounts> {
    TableCounts counts{.version = entry[1], .clocks = clocks_in(std::span(entry).subspan(kTableCounts), workers)};
    if (!is_count(counts.version)) return cannot_be(fmt::format("{} updates of a table", counts.version));
    SYNCOPATE_RETURN_IF_ERROR(check(counts.clocks));
    return counts;
  };
  const auto own = state.counts.find(shard_part::table_on(table, shard));
  if (own != state.counts.end() && own->second.size() >= kTableCounts &&
      own->second[0] == static_cast<std::int64_t>(shards)) {
    return read(own->second);
  }
  std::optional<TableCounts> counts;
  const std::string prefix = fmt::format("table{}@", table);
  for (const auto& [name, entry] : state.counts) {
    if (!name.starts_with(prefix) || entry.size() < kTableCounts) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(const TableCounts other, read(entry));
    if (!counts) {
      counts = other;
      continue;
    }
    counts->version = std::max(counts->version, other.version);
    combine(other.clocks, counts->clocks);
  }
  if (counts) return *counts;
  return TableCounts{.version = state.step, .clocks = all_at(state.step, workers)};
}

void merge_shard(const TrainingState& shard, TrainingState& all) {
  const bool is_first = all.names().empty() && all.counts.empty() && all.rows.empty();
  const bool has_steps = !shard.counts.empty();  // else it holds nothing
  const std::int64_t step =
      is_first || !has_steps ? (has_steps ? shard.step : all.step) : std::min(all.step, shard.step);
  std::map<std::size_t, RowsState> rows = std::move(all.rows);
  for (const auto& [table, more] : shard.rows) merge_rows(more, rows[table]);
  all.rows.clear();
  all.merge(shard);
  all.rows = std::move(rows);
  all.step = step;
}

}  // namespace syncopate::ps
