// TrainingState: what a replica or a shard must remember to go on as if nothing had happened, in ordinary memory, and
// independent of how the arena was cut. One form serves all: a checkpoint is written from it and read into it, a
// survivor carries it into the next membership epoch of a run, and a member that joins receives it.
//
// Values of the arena are stored by name, in pieces; a reader finds them whatever ranges it has. Rows of tables are
// stored by table, each with its optimizer state. One thread.
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

// The names under which strategies and shards store their parts.
namespace state_part {
inline constexpr const char* kWeights = "weights";
// The optimizer state per weight, as in OptimizerState: as many of these, from the first on, as the rule remembers.
inline constexpr const char* kOptimizer[] = {"optimizer.first", "optimizer.second", "optimizer.third"};
// The residual of error feedback, and the local state of a worker's model, by worker.
inline std::string residual_of(int worker) { return "residual.worker" + std::to_string(worker); }
inline std::string local_state_of(int worker) { return "local_state.worker" + std::to_string(worker); }
}  // namespace state_part

// Rows of one table, in the order of `keys`: `row_floats` floats each, the weights followed by their optimizer state.
struct RowsState {
  std::size_t row_floats = 0;
  std::vector<RowKey> keys;
  std::vector<float> values;

  bool operator==(const RowsState&) const = default;
};

class TrainingState {
 public:
  // The number of steps in the state; training goes on with this step.
  std::int64_t step = 0;
  std::map<std::size_t, RowsState> rows;  // by table
  // Whole numbers, by name: for those of shards see ps/server/shard_state.h; an allreduce has its own.
  std::map<std::string, std::vector<std::int64_t>, std::less<>> counts;

  // Returns memory for the values of `range`, with arbitrary contents, to be filled. Pieces of one name must not
  // overlap; the same piece may be requested again, and is then overwritten.
  std::span<float> piece(std::string_view name, Range range);
  // The same, and copies the values.
  void put(std::string_view name, std::size_t begin, std::span<const float> values);

  // Whether it has no piece and no table's rows.
  bool is_empty() const { return rows.empty() && names().empty(); }
  std::vector<std::string> names() const;
  // Returns the pieces of a name, ascending.
  std::vector<Range> pieces(std::string_view name) const;
  // Whether any piece of this name has an element of `range`.
  bool overlaps(std::string_view name, Range range) const;
  // Returns the values of `range` in the piece that contains all of it; empty if there is none.
  std::span<float> within(std::string_view name, Range range);
  // Whether pieces of this name cover all of `range`.
  bool covers(std::string_view name, Range range) const;
  // Reads the values of `range` from as many pieces as it takes. Fails with data loss, naming what is missing, unless
  // the pieces cover it.
  Status read(std::string_view name, Range range, std::span<float> to) const;
  // Returns the values of one piece, which must be one of pieces().
  std::span<const float> values(std::string_view name, Range piece) const;

  // Removes everything but the memory of pieces, so that taking a state repeatedly allocates nothing.
  void clear();
  // Adds everything that `other` has; for names and pieces that both have, the values of `other` win.
  void merge(const TrainingState& other);
  std::size_t bytes() const;

 private:
  struct Piece {
    std::unique_ptr<float[]> values;
    std::size_t size = 0;
    bool there = false;  // false: only memory, kept by clear()
  };
  using Pieces = std::map<std::size_t, Piece>;  // by begin

  std::map<std::string, Pieces, std::less<>> parts_;
};

}  // namespace syncopate
