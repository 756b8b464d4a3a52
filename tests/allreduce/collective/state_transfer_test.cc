#include "allreduce/collective/state_transfer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "allreduce/collective/schedule_collective.h"
#include "tests/support/cluster.h"

namespace syncopate::allreduce {
namespace {

using testing_support::connect_group;
using testing_support::run_ranks;
using testing_support::soon;

ParamLayout layout_with_a_table() {
  ParamLayout layout;
  layout.add_table("users", 1'000'000, 3, {.rows_a_step = 4});
  return layout;
}

// Rank 1 gives, rank 0 takes, rank 2 has it already.
TEST(StateTransfer, GivesValuesAndRowsOfAnyLengthToThoseThatTake) {
  const auto group = connect_group("inproc", 3);
  const ParamLayout layout = layout_with_a_table();
  run_ranks(3, [&](int rank) {
    const auto ring = make_schedule_collective(*group[static_cast<std::size_t>(rank)]);
    Result<StateTransfer> transfer = StateTransfer::begin(*ring, 1, rank == 0, soon);
    ASSERT_TRUE(transfer.ok());
    for (const std::size_t length : {0ul, 1ul, StateTransfer::kPieceFloats, 2 * StateTransfer::kPieceFloats + 5}) {
      std::vector<float> values(length, static_cast<float>(10 + rank));
      if (rank == 1) std::iota(values.begin(), values.end(), 1.0f);
      ASSERT_TRUE(transfer->give(values).ok());
      std::vector<float> expected(length, 12.0f);
      if (rank != 2) std::iota(expected.begin(), expected.end(), 1.0f);
      EXPECT_EQ(values, expected);
    }
    RowsState rows{.row_floats = 6};
    for (RowKey key = 0; rank == 1 && key < 100'000; ++key) {
      rows.keys.push_back(3 * key);
      for (int i = 0; i < 6; ++i) rows.values.push_back(static_cast<float>(key) + static_cast<float>(i));
    }
    const Status status = transfer->give(layout.tables()[0], rows);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(rows.keys.size(), rank == 2 ? 0u : 100'000u);
    if (rank == 0) {
      EXPECT_EQ(rows.keys.back(), 3u * 99'999);
      EXPECT_EQ(rows.values.back(), 100'004.0f);
    }
  });
}

TEST(StateTransfer, RefusesRowsThatCannotBeOfTheTable) {
  const auto group = connect_group("inproc", 2);
  const ParamLayout layout = layout_with_a_table();
  run_ranks(2, [&](int rank) {
    const auto ring = make_schedule_collective(*group[static_cast<std::size_t>(rank)]);
    Result<StateTransfer> transfer = StateTransfer::begin(*ring, 0, rank == 1, soon);
    ASSERT_TRUE(transfer.ok());
    RowsState descending{.row_floats = 1};
    if (rank == 0) descending = {.row_floats = 1, .keys = {7, 7}, .values = {0, 0}};
    EXPECT_EQ(transfer->give(layout.tables()[0], descending).code(), Code::kDataLoss);
    RowsState of_another_width{.row_floats = rank == 0 ? 2u : 1u};
    EXPECT_EQ(transfer->give(layout.tables()[0], of_another_width).code(), rank == 0 ? Code::kOk : Code::kDataLoss);
  });
}

}  // namespace
}  // namespace syncopate::allreduce
