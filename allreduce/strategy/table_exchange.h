// TableExchange: sums the gradients that all ranks have for the rows of one table. A row's sum is ((g0 + g1) + g2) +
// ... over the ranks that have it, in rank order; a row that no rank has is in no sum. There are two methods, with the
// same sums (bit by bit, if all_reduce sums in rank order):
//   rows   every rank sends its keys and rows to all others, and merges what it receives: (n-1)·K rows each way for
//   K
//          rows per rank
//   dense  rows are put into a buffer of the whole table, with a count of ranks for each, and all_reduce sums it:
//          2·(n-1)/n of the table each way, however few rows are touched
#pragma once

#include <span>
#include <vector>

#include "allreduce/collective.h"
#include "common/param_layout.h"
#include "common/tables/row_sum.h"

namespace syncopate::allreduce {

enum class ExchangeMethod { kRows, kDense };

class TableExchange {
 public:
  // `table` is a table of a layout. The collective must outlive it.
  TableExchange(Collective& collective, const TensorSpec& table);

  // Allocates the memory that `method` needs: an operation of all ranks, like Collective::allocate. Call it once per
  // method, before the first exchange.
  Status prepare(ExchangeMethod method);

  // An operation of all ranks, which must use the same `method`. `gradients` (keys, width) are this rank's, of at most
  // rows_a_step rows; they are the caller's again afterwards. Fails with data loss if what arrives cannot be rows of
  // this table.
  Status exchange(ExchangeMethod method, RowKeys keys, std::span<const float> gradients, TimePoint deadline);

  // The sum, valid until the next exchange.
  SparseRows sum() const { return sum_; }

 private:
  Status exchange_rows(RowKeys keys, std::span<const float> gradients, TimePoint deadline);
  Status exchange_dense(RowKeys keys, std::span<const float> gradients, TimePoint deadline);
  // The rows that `rank` has sent.
  Result<SparseRows> rows_of(std::size_t rank);

  Collective& collective_;
  const std::size_t rows_, width_;
  const std::size_t most_rows_;  // per rank and exchange
  SparseRows sum_;

  // Rows method: values, followed by their keys. Two messages in turn, since others may still read the last one.
  std::span<float> messages_[2];
  std::size_t turn_ = 0;
  std::vector<Bytes> given_, taken_;             // by rank
  std::vector<std::vector<RowKey>> keys_taken_;  // by rank: copies, since what is taken may lie in others' memory
  std::vector<SparseRows> rows_taken_;           // by rank
  RowSum merged_;

  // Dense method: (rows, width), followed by the number of ranks that touched each row. Zero between exchanges.
  std::span<float> table_;
  std::vector<RowKey> keys_;   // of the sum
  std::vector<float> values_;  // of the sum; may be longer than it
};

}  // namespace syncopate::allreduce
