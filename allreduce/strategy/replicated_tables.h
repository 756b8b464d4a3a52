// ReplicatedTables: the row-sparse tables of a job in which every replica keeps all rows. A step reads the rows that it
// touches, exchanges their gradients with all ranks, and updates the rows that any rank has touched.
//
// Unless it is given, the method of exchanging a table's gradients is found in the first steps of a run: both methods
// take turns of one step (BucketSearch), and the ranks agree on the sum of their times. The dense method is tried only
// if it sends at most kMostDense times what rows would if every rank touched as many as it may, so not with a table
// that is far too large.
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
  std::uint64_t seed = 1;  // seeds the first values of rows
  SparseExchange exchange = SparseExchange::kAuto;
  // Receives the method of each table once it is known, or that the run was too short to find out. May be null. Called
  // on the compute thread.
  std::function<void(const std::string& finding)> on_found = nullptr;
  // A step changes nothing before its updates: rows that it reads are not created at that time, as they are otherwise.
  bool undoable = false;
};

class ReplicatedTables {
 public:
  static constexpr std::size_t kMostDense = 4;

  // The collective and the clock must outlive it.
  ReplicatedTables(Collective& collective, const Clock& clock, ReplicatedTablesOptions options)
      : collective_(collective), clock_(clock), options_(std::move(options)) {}

  // Call it first. No row has been created yet.
  void allocate(const ParamLayout& layout);
  // Saves and restores all rows. restore fails with data loss if they cannot be this table's.
  void save(TrainingState& state) const;
  Status restore(const TrainingState& state);
  // Sends the giver's rows to the ranks that take them.
  Status transfer(StateTransfer& transfer);

  // The results of a search, by table, to be passed to prepare; 0 if there was none, or it has not ended.
  std::vector<std::uint64_t> found() const;

  // Allocates memory: an operation of all ranks, like Collective::allocate. A table whose method is in `found` is not
  // searched for again.
  Status prepare(std::span<const std::uint64_t> found);

  std::size_t size() const { return rows_.size(); }
  const RowTable& rows(std::size_t table) const { return rows_[table]; }

  // Call it in each step, on the compute thread: puts the rows that the step touches into the tables' ranges of the
  // arena.
  Status begin_step(std::span<const RowKeys> keys, std::span<float> weights);
  // Then for each table, on the communication thread: method() is the method of the next exchange, and exchange()
  // carries it out, on the table's range of the gradients' arena.
  ExchangeMethod method(std::size_t table) const;
  Status exchange(std::size_t table, RowKeys keys, std::span<const float> gradients, TimePoint deadline);
  // After that, on the compute thread.
  Status update(std::size_t table, const UpdateStep& step);
  // Call it at the end of a step: records its times. After the last step of the search the ranks agree.
  Status end_step(TimePoint deadline);
  // Call it after the last step.
  void leave() const;

 private:
  struct Table {
    TensorSpec spec;
    TableExchange exchange;
    BucketSearch search;  // among the methods below: one or both
    std::vector<ExchangeMethod> methods;
    ExchangeMethod settled{};  // once the search has ended
    bool is_found = false;     // by a search, rather than given or the only one
    Duration took{};           // time of the last exchange
  };

  std::size_t number_of(std::size_t table) const { return layout_.tables()[table].table->number; }
  void make_rows() { rows_ = row_tables_of(layout_, options_.seed, options_.optimizer); }
  std::vector<ExchangeMethod> methods_for(const TensorSpec& table) const;
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
  std::span<float> times_;     // by searched table, both methods; in the collective's memory
};

}  // namespace syncopate::allreduce
