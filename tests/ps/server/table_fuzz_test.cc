// A server with a table among messages that cannot be right, of a worker that is in the job and trains all the while.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/ps/job/ps_job.h"

namespace syncopate::ps {
namespace {

constexpr int kRowsAStep = 6;

// Small, large and negative.
std::uint64_t some_number(Random& random) { return random.below(2) == 0 ? random.below(4) : random.next(); }

// A header of a random kind with random fields, but none that could be right now: no join, leave or goodbye, never the
// clock that is due, and none that reads from the table.
std::string random_header(Random& random, std::int64_t clock) {
  const auto wrong_clock = [&] {
    const auto drawn = static_cast<std::int64_t>(some_number(random));
    return drawn == clock || drawn == clock + 1 ? clock + 2 : drawn;
  };
  wire::Header header;
  switch (random.below(9)) {
    case 0:
      header.mutable_pull()->set_table(some_number(random));
      header.mutable_pull()->set_clock(wrong_clock());
      header.mutable_pull()->set_slot(some_number(random));
      header.mutable_pull()->set_known(random.below(2) == 0);
      break;
    case 1:
      header.mutable_push_rows()->set_table(some_number(random));
      header.mutable_push_rows()->set_clock(wrong_clock());
      header.mutable_push_rows()->set_learning_rate(random.normal());
      break;
    case 2:
      header.mutable_read_rows()->set_table(1 + some_number(random));
      break;
    case 3:
      header.mutable_list_rows()->set_table(1 + some_number(random));
      header.mutable_list_rows()->set_offset(some_number(random));
      break;
    case 4:
      header.mutable_table()->set_table(some_number(random));
      header.mutable_table()->set_rows(some_number(random));
      header.mutable_table()->set_width(some_number(random));
      header.mutable_table()->set_rows_a_step(some_number(random));
      header.mutable_table()->set_number(some_number(random));
      break;
    case 5:
      header.mutable_rows()->set_table(some_number(random));
      break;
    case 6:
      header.mutable_push()->set_chunk(some_number(random));
      header.mutable_push()->set_clock(wrong_clock());
      break;
    case 7:
      header.mutable_rows_listed()->set_total(some_number(random));
      break;
    default: {
      std::string bytes(random.below(kMaxHeaderBytes), '\0');
      for (char& byte : bytes) byte = static_cast<char>(0x80 | random.below(128));  // endless numbers
      return bytes + '\xFF';
    }
  }
  return header.SerializeAsString();
}

TEST(TableFuzz, AServerCountsAndDropsWhatCannotBeRightAndServesOn) {
  constexpr std::int64_t kSteps = 40, kNoise = 25;
  constexpr PsGroup kGroup{.workers = 2, .servers = 1};
  ParamLayout layout;
  layout.add_table("table", 100, 2, {.rows_a_step = kRowsAStep});
  layout.add("dense", {16});
  PsJob job({.group = kGroup, .consistency = "sync"});
  job.run([&](int rank, PsStrategy& strategy) {
    const ParamArenas arenas = *strategy.allocate(layout);
    ASSERT_TRUE(strategy.join().ok());
    Random random(3, static_cast<std::uint64_t>(rank));
    Transport& endpoint = job.endpoint(rank);
    const std::span<std::byte> noise = *endpoint.allocate(64);
    PendingSends pending;
    for (std::int64_t i = 0; i < kSteps; ++i) {
      for (std::int64_t n = 0; n < kNoise && rank == 1; ++n) {
        ASSERT_TRUE(endpoint.wait(pending, testing_support::soon()).ok());
        for (std::byte& byte : noise) byte = static_cast<std::byte>(random.below(256));
        const Status sent =
            endpoint.send(kGroup.rank_of_shard(0), random_header(random, i),
                          noise.first(random.below(noise.size() + 1)), &pending, testing_support::soon());
        ASSERT_TRUE(sent.ok()) << sent.message();
      }
      const std::vector<RowKey> keys{static_cast<RowKey>(i % 7), static_cast<RowKey>(10 + rank)};
      const RowKeys rows[] = {keys};
      strategy.begin_step({.step = i, .learning_rate = 1, .rows = rows});
      ASSERT_TRUE(strategy.weights_needed({0, layout.size()}).ok());
      std::fill(arenas.gradients.begin(), arenas.gradients.end(), 1.0f);
      for (const std::size_t bucket : {0u, 1u}) strategy.gradient_ready(bucket);
      const Result<SyncStats> stats = strategy.finish_step();
      ASSERT_TRUE(stats.ok()) << stats.status().message();
    }
    ASSERT_TRUE(strategy.leave().ok());
    if (rank != kChief) return;
    std::vector<float> values(4);
    ASSERT_TRUE(strategy.read_rows(0, std::vector<RowKey>{6, 10}, values).ok());
    EXPECT_EQ(values, (std::vector<float>{-5, -5, -20, -20}));
  });
  EXPECT_EQ(job.total().dropped, kSteps * kNoise);
  EXPECT_TRUE(job.served(0).ok());
}

}  // namespace
}  // namespace syncopate::ps
