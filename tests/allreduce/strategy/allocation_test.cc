// That the exchange and the update of a table's rows allocate nothing once the rows are there: every `new` of this
// program is counted.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <numeric>

#include "allreduce/strategy/replicated_tables.h"
#include "tests/support/cluster.h"
#include "tests/support/direct_group.h"

namespace {

thread_local int allocations = 0;

}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
// Sorting takes its room by this one.
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  ++allocations;
  return std::malloc(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace syncopate::allreduce {
namespace {

TEST(ReplicatedTables, AllocateNothingOnceTheirRowsAreThere) {
  ParamLayout layout;
  layout.add_table("table", 1000, 8, {.rows_a_step = 300, .limit = 0.1f});
  std::vector<float> weights[2], gradients[2];
  for (auto* arena : {weights, gradients}) arena[0] = arena[1] = std::vector<float>(layout.size(), 1.0f);
  const auto group = testing_support::connect_direct(2);
  testing_support::run_ranks(2, [&](int rank) {
    const SteadyClock clock;
    ReplicatedTables tables(*group[static_cast<std::size_t>(rank)], clock,
                            {.optimizer = {.kind = OptimizerKind::kAdam}, .exchange = SparseExchange::kRows});
    tables.allocate(layout);
    ASSERT_TRUE(tables.prepare(std::vector<std::uint64_t>(1)).ok());
    std::vector<RowKey> keys(200);
    std::iota(keys.begin(), keys.end(), static_cast<RowKey>(100 * rank));
    const std::vector<RowKeys> rows{keys};
    for (int step = 0; step < 5; ++step) {
      allocations = 0;
      ASSERT_TRUE(tables.begin_step(rows, weights[rank]).ok());
      ASSERT_TRUE(tables.exchange(0, keys, gradients[rank], testing_support::soon()).ok());
      ASSERT_TRUE(tables.update(0, {.learning_rate = 0.1f, .number = step + 1}).ok());
    }
    EXPECT_EQ(allocations, 0);
    EXPECT_EQ(tables.rows(0).created(), 300u);
    ASSERT_TRUE(group[static_cast<std::size_t>(rank)]->barrier(testing_support::soon()).ok());
  });
}

}  // namespace
}  // namespace syncopate::allreduce
