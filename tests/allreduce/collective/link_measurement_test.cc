#include "allreduce/collective/link_measurement.h"

#include <gtest/gtest.h>

#include <thread>

#include "allreduce/collective/schedule_collective.h"
#include "allreduce/schedule/algorithms.h"
#include "common/transport/forwarding_transport.h"
#include "common/transport/shaped_transport.h"
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
    const auto collective = make_schedule_collective(*group[static_cast<std::size_t>(rank)]);
    const std::optional<GroupLinks> known_links = known ? std::optional(uniform_links(*known)) : std::nullopt;
    Result<GroupLinks> agreed = agree_on_links(*collective, nullptr, known_links, clock, soon());
    ASSERT_TRUE(agreed.ok()) << agreed.status().message();
    EXPECT_TRUE(same(agreed->inside, agreed->across)) << "one host";
    links[static_cast<std::size_t>(rank)] = agreed->inside;
    // Who has agreed goes on at once, while others may still be at it.
    collective->choose_by(*agreed);
    Result<std::span<float>> buffer = collective->allocate(1000);
    ASSERT_TRUE(buffer.ok());
    std::ranges::fill(*buffer, 1.0f);
    const Status status = collective->all_reduce(*buffer, soon());
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(buffer->back(), static_cast<float>(size));
    EXPECT_STREQ(collective->name(), "auto");
  });
  return links;
}

TEST(LinkMeasurement, GivesAllRanksTheSameOverEveryWire) {
  for (const std::string& wire : testing_support::all_wires()) {
    for (int size : {2, 3, 4}) {
      const std::vector<LinkModel> links = agreed(wire, size, std::nullopt);
      for (const LinkModel& link : links) EXPECT_TRUE(same(link, links[0])) << wire;
      EXPECT_GT(links[0].latency + links[0].seconds_per_byte, 0) << wire;
      EXPECT_GT(links[0].reduce_seconds_per_byte, 0) << wire;
    }
  }
}

// A ring of 4 ranks with the longest messages would last 17 s here.
TEST(LinkMeasurement, FindsASlowWireOutInSeconds) {
  const LinkShape shape = *LinkShape::parse("1mbit+3ms");
  // They stay until all have measured: what one has sent is still under way when it is done.
  std::vector<std::unique_ptr<ShapedTransport>> endpoints;
  for (auto& endpoint : connect_group("inproc", 4)) {
    endpoints.push_back(std::make_unique<ShapedTransport>(std::move(endpoint), std::make_shared<ProcessLink>(shape)));
  }
  const SteadyClock clock;
  const TimePoint begin = clock.now();
  run_ranks(4, [&](int rank) {
    const auto ring = make_schedule_collective(*endpoints[static_cast<std::size_t>(rank)]);
    const Result<GroupLinks> links = agree_on_links(*ring, nullptr, std::nullopt, clock, soon());
    ASSERT_TRUE(links.ok()) << links.status().message();
    EXPECT_GT(links->inside.latency, 0.003);
    EXPECT_LT(links->inside.latency, 0.009);
    EXPECT_GT(links->inside.seconds_per_byte, 7e-6);
    EXPECT_LT(links->inside.seconds_per_byte, 11e-6);
  });
  EXPECT_LT(clock.now() - begin, std::chrono::seconds(15));
}

// Takes its time to send to ranks on other hosts.
class SlowAcross final : public ForwardingTransport {
 public:
  SlowAcross(std::unique_ptr<Transport> inner, const RanksByHost& hosts)
      : ForwardingTransport(std::move(inner)), hosts_(hosts) {}

  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint deadline) override {
    if (host_of(peer, hosts_) != host_of(rank(), hosts_)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return ForwardingTransport::send(peer, header, payload, pending, deadline);
  }

 private:
  const RanksByHost hosts_;
};

TEST(LinkMeasurement, TellsLinksInsideHostsFromThoseAcross) {
  for (const RanksByHost& hosts : {RanksByHost{{0, 1}, {2, 3}}, RanksByHost{{0}, {1, 2, 3}}}) {
    auto group = connect_group("inproc", 4);
    for (auto& endpoint : group) endpoint = std::make_unique<SlowAcross>(std::move(endpoint), hosts);
    std::vector<GroupLinks> links(4);
    const SteadyClock clock;
    run_ranks(4, [&](int rank) {
      const auto ring = make_schedule_collective(*group[static_cast<std::size_t>(rank)], {.ranks_by_host = hosts});
      const Result<GroupLinks> agreed = agree_on_links(*ring, nullptr, std::nullopt, clock, soon());
      ASSERT_TRUE(agreed.ok()) << agreed.status().message();
      links[static_cast<std::size_t>(rank)] = *agreed;
    });
    for (const GroupLinks& of_rank : links) {
      EXPECT_TRUE(same(of_rank.inside, links[0].inside) && same(of_rank.across, links[0].across)) << "alike on all";
    }
    EXPECT_GT(links[0].across.latency, 0.01);
    EXPECT_GT(links[0].across.latency, 2 * links[0].inside.latency);
    EXPECT_GT(links[0].inside.latency + links[0].inside.seconds_per_byte, 0);
    EXPECT_TRUE(same(links[0].two_level_inside, links[0].inside)) << "no memory was given";
  }
}

TEST(LinkMeasurement, TakesWhatTheFirstRankKnows) {
  const LinkModel known{0x1p-19, 0x1p-32, 0x1p-35};
  for (const LinkModel& link : agreed("inproc", 3, known)) EXPECT_TRUE(same(link, known));
}

TEST(LinkMeasurement, EndsAtTheDeadlineWhereARankIsMissing) {
  auto group = connect_group("inproc", 2);
  const SteadyClock clock;
  const auto ring = make_schedule_collective(*group[1]);
  const Result<GroupLinks> links =
      agree_on_links(*ring, nullptr, std::nullopt, clock, clock.now() + std::chrono::milliseconds(50));
  EXPECT_EQ(links.status().code(), Code::kDeadlineExceeded) << links.status().message();
}

}  // namespace
}  // namespace syncopate::allreduce
