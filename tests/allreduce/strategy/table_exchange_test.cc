#include "allreduce/strategy/table_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/cluster.h"
#include "tests/support/direct_group.h"

namespace syncopate::allreduce {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::run_ranks;
using testing_support::soon;

TensorSpec table_of(std::int64_t rows) {
  ParamLayout layout;
  layout.add_table("table", rows, 2, {.rows_a_step = 3});
  return layout.tables().front();
}

TEST(TableExchange, SumsTheRowsThatRanksHaveEitherWay) {
  const auto group = testing_support::connect_direct(2);
  run_ranks(2, [&](int rank) {
    TableExchange exchange(*group[static_cast<std::size_t>(rank)], table_of(10));
    for (const ExchangeMethod method : {ExchangeMethod::kRows, ExchangeMethod::kDense})
      ASSERT_TRUE(exchange.prepare(method).ok());
    const std::vector<RowKey> keys = rank == 0 ? std::vector<RowKey>{1, 9} : std::vector<RowKey>{0, 1, 4};
    const std::vector<float> gradients =
        rank == 0 ? std::vector<float>{1, 2, 0, 0} : std::vector<float>{10, 20, 30, 40, 50, 60};
    for (int round = 0; round < 3; ++round) {
      for (const ExchangeMethod method : {ExchangeMethod::kRows, ExchangeMethod::kDense}) {
        const Status status = exchange.exchange(method, keys, gradients, soon());
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_THAT(exchange.sum().keys, ElementsAre(0u, 1u, 4u, 9u)) << "also a row whose gradient is zero";
        EXPECT_THAT(exchange.sum().values, ElementsAre(10, 20, 31, 42, 50, 60, 0, 0));
        ASSERT_TRUE(exchange.exchange(method, {}, {}, soon()).ok());
        EXPECT_THAT(exchange.sum().keys, IsEmpty());
      }
    }
    ASSERT_TRUE(group[static_cast<std::size_t>(rank)]->barrier(soon()).ok());
  });
}

// What rank 0 says of `message` from rank 1: values, keys.
std::string said_of(std::vector<float> values, std::vector<RowKey> keys, std::size_t bytes) {
  std::string said;
  const auto group = testing_support::connect_direct(2);
  run_ranks(2, [&](int rank) {
    Collective& collective = *group[static_cast<std::size_t>(rank)];
    TableExchange exchange(collective, table_of(10));
    ASSERT_TRUE(exchange.prepare(ExchangeMethod::kRows).ok());
    const Result<std::span<float>> forged = collective.allocate(100);
    ASSERT_TRUE(forged.ok());
    if (rank == 0) {
      const Status status = exchange.exchange(ExchangeMethod::kRows, {}, {}, soon());
      EXPECT_EQ(status.code(), Code::kDataLoss);
      said = status.message();
    } else {
      std::ranges::copy(values, forged->begin());
      std::ranges::copy(std::as_bytes(std::span(keys)), std::as_writable_bytes(*forged).begin() + 4 * values.size());
      const std::vector<Bytes> given(2, std::as_bytes(*forged).first(bytes));
      std::vector<Bytes> taken(2);
      ASSERT_TRUE(collective.all_to_all(given, taken, soon()).ok());
    }
    ASSERT_TRUE(collective.barrier(soon()).ok());
  });
  return said;
}

TEST(TableExchange, TakesNothingThatCannotBeRowsOfItsTable) {
  EXPECT_THAT(said_of({}, {}, 11), HasSubstr("from rank 1: 11 bytes are not up to 3 rows of 2 floats with their keys"));
  EXPECT_THAT(said_of({}, {}, 4 * 12), HasSubstr("48 bytes are not up to 3 rows"));
  EXPECT_THAT(said_of({1, 2}, {10}, 12), HasSubstr("its keys do not ascend below 10"));
  EXPECT_THAT(said_of({1, 2, 3, 4}, {3, 3}, 24), HasSubstr("its keys do not ascend below 10"));
}

}  // namespace
}  // namespace syncopate::allreduce
