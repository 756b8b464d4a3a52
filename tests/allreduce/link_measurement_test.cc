#include "allreduce/link_measurement.h"

#include <gtest/gtest.h>

#include "tests/support/cluster.h"

namespace syncopate::allreduce {
namespace {

using testing_support::connect_group;
using testing_support::run_ranks;
using testing_support::soon;

bool same(const LinkModel& a, const LinkModel& b) {
  return a.latency == b.latency && a.seconds_per_byte == b.seconds_per_byte &&
         a.reduce_seconds_per_byte == b.reduce_seconds_per_byte;
}

std::vector<LinkModel> agreed(const std::string& wire, int size, const std::optional<LinkModel>& known_to_first) {
  auto group = connect_group(wire, size);
  std::vector<LinkModel> links(static_cast<std::size_t>(size));
  const SteadyClock clock;
  run_ranks(size, [&](int rank) {
    // What others than rank 0 know does not count.
    const std::optional<LinkModel> known = rank == 0 ? known_to_first : LinkModel{9, 9, 9};
    Result<LinkModel> link = agree_on_link(*group[static_cast<std::size_t>(rank)], known, clock, soon());
    ASSERT_TRUE(link.ok()) << link.status().message();
    links[static_cast<std::size_t>(rank)] = *link;
  });
  return links;
}

TEST(LinkMeasurement, GivesAllRanksTheSameOverEveryWire) {
  for (const std::string& wire : testing_support::all_wires()) {
    for (int size : {2, 3}) {
      const std::vector<LinkModel> links = agreed(wire, size, std::nullopt);
      for (const LinkModel& link : links) EXPECT_TRUE(same(link, links[0])) << wire;
      EXPECT_GT(links[0].latency + links[0].seconds_per_byte, 0) << wire;
      EXPECT_GT(links[0].reduce_seconds_per_byte, 0) << wire;
    }
  }
}

TEST(LinkMeasurement, TakesWhatTheFirstRankKnows) {
  const LinkModel known{2e-6, 3e-10, 4e-11};
  for (const LinkModel& link : agreed("inproc", 3, known)) EXPECT_TRUE(same(link, known));
}

TEST(LinkMeasurement, EndsAtTheDeadlineWhereARankIsMissing) {
  auto group = connect_group("inproc", 2);
  const SteadyClock clock;
  const Result<LinkModel> link =
      agree_on_link(*group[1], std::nullopt, clock, clock.now() + std::chrono::milliseconds(50));
  EXPECT_EQ(link.status().code(), Code::kDeadlineExceeded) << link.status().message();
}

}  // namespace
}  // namespace syncopate::allreduce
