// TableExchange: sums what all ranks have for the rows of one table. A row's sum is ((g0 + g1) + g2) + ... over the
// ranks that have it, in their order; a row that none has is in no sum. Two ways, with the same sums (bit by bit, where
// all_reduce sums in the order of ranks):
//   rows   every rank gives all others its keys and rows, and merges what it takes: (n-1)·K rows each way of K a rank
//   dense  rows are put into a buffer of the whole table, with a count of ranks for each, and all_reduce sums it:
//          2·(n-1)/n of the table each way, however few rows are touched
#pragma once

#include <span>
#include <vector>

#include "allreduce/collective.h"
#include "common/param_layout.h"
#include "common/tables/row_sum.h"

namespace syncopate::allreduce {

enum class TableWay { kRows, kDense };

class TableExchange {
 public:
  // Of a table of a layout. The collective outlives it.
  TableExchange(Collective& collective, const TensorSpec& table);

  // Gets the memory that `way` needs: an operation of all ranks, as Collective::allocate is. Once a way, before the
  // first exchange.
  Status prepare(TableWay way);

  // An operation of all ranks, which come the same way, with this rank's `gradients` (keys, width) of at most
  // rows_a_step rows, which are the caller's again afterwards. Data loss where what comes cannot be rows of this table.
  Status exchange(TableWay way, RowKeys keys, std::span<const float> gradients, TimePoint deadline);

  // The sum, until the next exchange.
  SparseRows sum() const { return sum_; }

 private:
  Status exchange_rows(RowKeys keys, std::span<const float> gradients, TimePoint deadline);
  Status exchange_dense(RowKeys keys, std::span<const float> gradients, TimePoint deadline);
  // The rows that `rank` has given.
  Result<SparseRows> rows_of(std::size_t rank);

  Collective& collective_;
  const std::size_t rows_, width_;
  const std::size_t most_rows_;  // of a rank in one exchange
  SparseRows sum_;

  // Rows: values, and their keys behind. Two messages in turn, since others may still read the last one.
  std::span<float> messages_[2];
  std::size_t turn_ = 0;
  std::vector<Bytes> given_, taken_;             // by rank
  std::vector<std::vector<RowKey>> keys_taken_;  // by rank: copies, since what is taken may lie in others' memory
  std::vector<SparseRows> rows_taken_;           // by rank
  RowSum merged_;

  // Dense: (rows, width), and behind it for each row by how many ranks it is touched. Zero between exchanges.
  std::span<float> table_;
  std::vector<RowKey> keys_;   // of the sum
  std::vector<float> values_;  // of the sum; more than it has
};

}  // namespace syncopate::allreduce
