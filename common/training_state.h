// TrainingState: what a replica or a shard must remember to go on as if nothing had happened, in ordinary memory, and
// free of how the arena was cut. One form serves all: a checkpoint is written from it and read into it, a survivor
// carries it into the next generation of a run, and who joins is given it.
//
// Values of the arena are kept by name, piece by piece; a piece is found again whatever ranges its reader has. Rows of
// tables are kept by table, each with what the optimizer remembers of it. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/param_layout.h"
#include "common/status.h"

namespace syncopate {

// The names by which strategies and shards keep their parts.
namespace state_part {
inline constexpr const char* kWeights = "weights";
// What the optimizer remembers of each weight, as OptimizerState has it: none, the first, or both.
inline constexpr const char* kOptimizer[] = {"optimizer.first", "optimizer.second"};
// What error feedback has kept back, by worker; and what a worker's model keeps beside its weights.
inline std::string residual_of(int worker) { return "residual.worker" + std::to_string(worker); }
inline std::string local_state_of(int worker) { return "local_state.worker" + std::to_string(worker); }
}  // namespace state_part

// Rows of one table, in the order of `keys`: `row_floats` of each, the weights and behind them what the optimizer
// remembers.
struct RowsState {
  std::size_t row_floats = 0;
  std::vector<RowKey> keys;
  std::vector<float> values;

  bool operator==(const RowsState&) const = default;
};

class TrainingState {
 public:
  // Steps that are in it: training goes on with this one.
  std::int64_t step = 0;
  std::map<std::size_t, RowsState> rows;  // by table
  // Whole numbers, by name: those of shards are ps/server/shard_state's, those of an allreduce its own.
  std::map<std::string, std::vector<std::int64_t>, std::less<>> counts;

  // Memory for the values of `range`, to be filled: what it holds is anything. Pieces of one name must not overlap; the
  // same piece may be asked for again, and is then overwritten.
  std::span<float> piece(std::string_view name, Range range);
  // The same with the values.
  void put(std::string_view name, std::size_t begin, std::span<const float> values);

  std::vector<std::string> names() const;
  // The pieces of a name, ascending.
  std::vector<Range> pieces(std::string_view name) const;
  // Whether any piece of this name has an element of `range`.
  bool overlaps(std::string_view name, Range range) const;
  // The values of `range` in the piece that has all of it; empty where there is none.
  std::span<float> within(std::string_view name, Range range);
  // Whether pieces of this name cover all of `range`.
  bool covers(std::string_view name, Range range) const;
  // The values of `range`, out of as many pieces as it takes: data loss, naming what is missing, unless they cover it.
  Status read(std::string_view name, Range range, std::span<float> to) const;
  // Of one piece, as pieces() tells it.
  std::span<const float> values(std::string_view name, Range piece) const;

  // Forgets everything but the memory of pieces: where a state is taken again and again, nothing is allocated.
  void clear();
  // Adds all that `other` has; of names and pieces that both have, the other's count.
  void merge(const TrainingState& other);
  std::size_t bytes() const;

 private:
  struct Piece {
    std::unique_ptr<float[]> values;
    std::size_t size = 0;
    bool there = false;  // false: memory alone, kept by clear()
  };
  using Pieces = std::map<std::size_t, Piece>;  // by where they begin

  std::map<std::string, Pieces, std::less<>> parts_;
};

}  // namespace syncopate
