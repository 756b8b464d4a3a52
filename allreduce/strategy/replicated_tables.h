// ReplicatedTables: the row-sparse tables of a job in which every replica keeps all rows. A step reads the rows that it
// touches, exchanges their gradients with all ranks, and updates the rows that any rank has touched.
//
// Which way a table's gradients go is found in the first steps of a run, unless it is given: both take turns of one
// step (BucketSearch), and the ranks agree on the sum of their times. The dense way is tried only where it moves at
// most kMostDense times what rows would if every rank touched as many as it may: not with a table that is far too
// large.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "allreduce/collective.h"
#include "allreduce/collective/state_transfer.h"
#include "allreduce/strategy/bucket_search.h"
#include "allreduce/strategy/sparse_exchange.h"
#include "allreduce/strategy/table_exchange.h"
#include "common/clock.h"
#include "common/optimizer/optimizer.h"
#include "common/tables/row_table.h"

namespace syncopate::allreduce {

struct ReplicatedTablesOptions {
  OptimizerConfig optimizer;
  std::uint64_t seed = 1;  // what rows begin with
  SparseExchange exchange = SparseExchange::kAuto;
  // Told which way each table goes, once that is known, or that the run was too short to find out; may be null. From
  // the compute thread.
  std::function<void(const std::string& finding)> on_found = nullptr;
  // A step changes nothing before its updates: rows that it reads are not made then, as they are else.
  bool undoable = false;
};

class ReplicatedTables {
 public:
  static constexpr std::size_t kMostDense = 4;

  // The collective and the clock outlive it.
  ReplicatedTables(Collective& collective, const Clock& clock, ReplicatedTablesOptions options)
      : collective_(collective), clock_(clock), options_(std::move(options)) {}

  // First: rows, of which none has been made.
  void allocate(const ParamLayout& layout);
  // All rows as they are, and the other way round: data loss where they cannot be this table's.
  void save(TrainingState& state) const;
  Status restore(const TrainingState& state);
  // Those of the giver, to ranks that take them.
  Status transfer(StateTransfer& transfer);

  // What a search has found, by table, to be given to prepare; 0 where there was none, or it has not ended.
  std::vector<std::uint64_t> found() const;

  // Gets memory: an operation of all ranks, as Collective::allocate is. What `found` says of a table that may be
  // searched for is not searched for again.
  Status prepare(std::span<const std::uint64_t> found);

  std::size_t size() const { return rows_.size(); }
  const RowTable& rows(std::size_t table) const { return rows_[table]; }

  // Of each step, on the compute thread: puts the rows that it touches into the tables' rooms of the arena.
  Status begin_step(std::span<const RowKeys> keys, std::span<float> weights);
  // Then of each table, on the communication thread: the operation that it does next, and the operation itself, on what
  // its room of the gradients' arena holds.
  TableWay way(std::size_t table) const;
  Status exchange(std::size_t table, RowKeys keys, std::span<const float> gradients, TimePoint deadline);
  // After that, on the compute thread.
  Status update(std::size_t table, const UpdateStep& step);
  // After all of a step: notes its times. After the last step of the search the ranks agree.
  Status end_step(TimePoint deadline);
  // After the last step.
  void leave() const;

 private:
  struct Table {
    TensorSpec spec;
    TableExchange exchange;
    BucketSearch search;  // among the ways below: one, or both
    std::vector<TableWay> ways;
    TableWay settled{};     // once the search has ended
    bool is_found = false;  // rather than given, or the only one
    Duration took{};        // the last exchange
  };

  void make_rows() { rows_ = row_tables_of(layout_, options_.seed, options_.optimizer); }
  std::vector<TableWay> ways_for(const TensorSpec& table) const;
  Status settle(TimePoint deadline);
  void tell_untried() const;
  void tell(const std::string& finding) const;

  Collective& collective_;
  const Clock& clock_;
  const ReplicatedTablesOptions options_;
  ParamLayout layout_;
  std::vector<RowTable> rows_;
  std::vector<Table> tables_;  // from prepare on
  std::size_t searching_ = 0;  // tables
  int steps_ = 0;              // of their search
  std::span<float> times_;     // by table that is searched for, both ways; in the collective's memory
};

}  // namespace syncopate::allreduce
