#include "allreduce/collective/two_level_collective.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <latch>
#include <thread>

#include "allreduce/collective/link_measurement.h"
#include "common/random.h"
#include "common/transport/inproc_transport.h"
#include "common/transport/make_transport.h"
#include "tests/support/board_rendezvous.h"
#include "tests/support/cluster.h"
#include "tests/support/forked_ranks.h"
#include "tests/support/quiet_wire.h"
#include "tests/support/slowness.h"
#include "tests/support/test_keys.h"

namespace syncopate::allreduce {
namespace {

using testing_support::connect_group;
using testing_support::MortalTransport;
using testing_support::run_ranks;
using testing_support::soon;

int size_of(const RanksByHost& hosts) {
  int size = 0;
  for (const std::vector<int>& ranks : hosts) size += static_cast<int>(ranks.size());
  return size;
}

// Connects `rank` with the others of its host.
Result<std::unique_ptr<DirectCollective>> connect_inside(const std::string& run, const RanksByHost& hosts, int rank,
                                                         Rendezvous& rendezvous) {
  for (std::size_t host = 0; host < hosts.size(); ++host) {
    const auto found = std::ranges::find(hosts[host], rank);
    if (found == hosts[host].end()) continue;
    return make_direct_collective({.run_id = run,
                                   .group = fmt::format("host-{}", host),
                                   .rank = static_cast<int>(found - hosts[host].begin()),
                                   .size = static_cast<int>(hosts[host].size()),
                                   .keys = testing_support::test_keys()},
                                  rendezvous, soon(), hosts[host]);
  }
  return Status::invalid_argument("a rank on no host");
}

std::unique_ptr<Collective> on_two_levels(DirectCollective& inside, Transport& transport, ScheduleOptions options) {
  options.kind = ScheduleKind::kHierarchical;
  return make_two_level_collective(inside, make_schedule_collective(transport, options));
}

// Runs body(collective, transport) on every rank, each a thread.
void with_hosts(const std::string& wire, const ScheduleOptions& options,
                const std::function<void(Collective&, Transport&)>& body) {
  static std::atomic<int> groups{0};
  const std::string run = fmt::format("two-level-{}-{}", getpid(), groups++);
  const int size = size_of(options.ranks_by_host);
  InProcRendezvous rendezvous;
  std::vector<std::unique_ptr<DirectCollective>> inside(static_cast<std::size_t>(size));
  run_ranks(size, [&](int rank) {
    auto connected = connect_inside(run, options.ranks_by_host, rank, rendezvous);
    ASSERT_TRUE(connected.ok()) << connected.status().message();
    inside[static_cast<std::size_t>(rank)] = std::move(*connected);
  });
  const std::vector<std::unique_ptr<Transport>> transports = connect_group(wire, size);
  run_ranks(size, [&](int rank) {
    Transport& transport = *transports[static_cast<std::size_t>(rank)];
    body(*on_two_levels(*inside[static_cast<std::size_t>(rank)], transport, options), transport);
  });
}

// Returns values of very different sizes, so that sums depend on the order; exact products.
float drawn(int rank, std::size_t i) {
  Random random(static_cast<std::uint64_t>(rank) * 7919 + i * 13);
  return static_cast<float>(random.below(100000)) * (random.below(2) == 0 ? 0x1p-16f : 0x1p16f);
}

// Returns the sum that the rank comes to.
std::vector<float> sum_of_drawn(Collective& collective, std::size_t length) {
  const std::span<float> buffer = *collective.allocate(length);
  for (std::size_t i = 0; i < length; ++i) buffer[i] = drawn(collective.rank(), i);
  const Status status = collective.all_reduce(buffer, soon());
  EXPECT_TRUE(status.ok()) << status.message();
  return {buffer.begin(), buffer.end()};
}

const std::vector<RanksByHost>& all_hosts() {
  static const std::vector<RanksByHost> hosts = {
      {{0, 1}, {2, 3}}, {{0, 1, 2}, {3}}, {{0}, {1}, {2}}, {{0, 2}, {1, 3, 4}, {5, 6}}, {{0, 1, 2}}};
  return hosts;
}

class TwoLevelCollective : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Wire, TwoLevelCollective, testing::Values("inproc", "tcp", "sockets"),
                         [](const auto& wire) { return wire.param; });

TEST_P(TwoLevelCollective, HasTheBitsOfTheScheduleOverOneWireOnEveryRank) {
  for (const RanksByHost& hosts : all_hosts()) {
    for (const std::size_t segment_bytes : {0u, 4096u}) {
      const ScheduleOptions options{
          .kind = ScheduleKind::kHierarchical, .segment_bytes = segment_bytes, .ranks_by_host = hosts};
      for (const std::size_t length : {1u, 100u, 30001u}) {
        SCOPED_TRACE(fmt::format("{} hosts, segments of {} bytes, {} elements", hosts.size(), segment_bytes, length));
        std::vector<float> expected;
        const auto group = connect_group("inproc", size_of(hosts));
        run_ranks(size_of(hosts), [&](int rank) {
          const auto schedule = make_schedule_collective(*group[static_cast<std::size_t>(rank)], options);
          std::vector<float> sum = sum_of_drawn(*schedule, length);
          if (rank == 0) expected = std::move(sum);
        });
        with_hosts(GetParam(), options, [&](Collective& collective, Transport&) {
          EXPECT_STREQ(collective.name(), "hierarchical");
          for (int round = 0; round < 3; ++round) EXPECT_EQ(sum_of_drawn(collective, length), expected);
        });
      }
    }
  }
}

TEST_P(TwoLevelCollective, SendsBetweenHostsAloneWhatARingOfTheOwnersSends) {
  constexpr std::size_t kLength = 64 * 1024;
  const RanksByHost hosts = {{0, 1, 2, 3}, {4, 5, 6, 7}};
  with_hosts(GetParam(), {.segment_bytes = 4096, .ranks_by_host = hosts}, [](Collective& collective, Transport& wire) {
    (void)sum_of_drawn(collective, kLength);
    // 2(h-1)/h of a quarter: the four ranks of a host send together as much as its link must carry.
    EXPECT_EQ(wire.counters().payload_bytes_out, static_cast<std::int64_t>(kLength * sizeof(float) / 4));
    EXPECT_EQ(wire.counters().payload_bytes_in, static_cast<std::int64_t>(kLength * sizeof(float) / 4));
    EXPECT_GT(collective.counters().payload_bytes_out, wire.counters().payload_bytes_out) << "the host's memory counts";
  });
}

// Short buffers go by doubling, since memory takes 1 ms here, and long ones on two levels.
TEST_P(TwoLevelCollective, SumsEachBufferAsIsCheapestForItsSize) {
  static std::atomic<int> groups{0};
  const RanksByHost hosts = {{0, 1}, {2, 3}};
  const std::string run = fmt::format("by-size-{}-{}", getpid(), groups++);
  InProcRendezvous rendezvous;
  const auto group = connect_group(GetParam(), 4);
  const SteadyClock clock;
  run_ranks(4, [&](int rank) {
    auto inside = connect_inside(run, hosts, rank, rendezvous);
    ASSERT_TRUE(inside.ok()) << inside.status().message();
    Transport& wire = *group[static_cast<std::size_t>(rank)];
    auto all = make_schedule_collective(wire, {.ranks_by_host = hosts});
    const Result<GroupLinks> measured = agree_on_links(*all, inside->get(), std::nullopt, clock, soon());
    ASSERT_TRUE(measured.ok()) << measured.status().message();
    EXPECT_GT(measured->two_level_inside.latency + measured->two_level_inside.seconds_per_byte, 0);
    constexpr LinkModel kWire{.latency = 50e-6, .seconds_per_byte = 8.5e-9};
    all->choose_by({kWire, kWire, {.latency = 1e-3}});
    EXPECT_EQ(all->kind_for(64), ScheduleKind::kDoubling);
    EXPECT_EQ(all->kind_for(4 << 20), ScheduleKind::kHierarchical);
    const auto collective = make_two_level_collective(**inside, std::move(all));
    EXPECT_STREQ(collective->name(), "auto");
    for (const auto& [length, sent] : {std::pair<std::size_t, std::size_t>(16, 2 * 16), {1 << 20, 1 << 19}}) {
      const std::span<float> buffer = *collective->allocate(length);
      std::ranges::fill(buffer, static_cast<float>(rank));
      const std::int64_t before = wire.counters().payload_bytes_out;
      const Status status = collective->all_reduce(buffer, soon());
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_TRUE(std::ranges::all_of(buffer, [](float value) { return value == 6; }));
      EXPECT_EQ(wire.counters().payload_bytes_out - before, static_cast<std::int64_t>(sent * sizeof(float)));
    }
  });
}

TEST_P(TwoLevelCollective, DoesAllOtherOperationsInTheSameMemory) {
  with_hosts(GetParam(), {.ranks_by_host = {{0, 1}, {2, 3}}}, [](Collective& collective, Transport&) {
    const std::span<float> buffer = *collective.allocate(1000);
    for (int root = 0; root < 4; ++root) {
      std::ranges::fill(buffer, static_cast<float>(collective.rank()));
      ASSERT_TRUE(collective.broadcast(buffer, root, soon()).ok());
      for (float value : buffer) ASSERT_EQ(value, static_cast<float>(root));
      ASSERT_TRUE(collective.barrier(soon()).ok());
      ASSERT_TRUE(collective.all_reduce(buffer, soon()).ok());
      for (float value : buffer) ASSERT_EQ(value, static_cast<float>(4 * root));
    }
    std::ranges::fill(buffer, static_cast<float>(collective.rank()));
    ASSERT_TRUE(collective.reduce_pair(buffer, 3 - collective.rank(), soon()).ok());
    for (float value : buffer) ASSERT_EQ(value, 3.0f);
    std::ranges::fill(buffer, static_cast<float>(collective.rank()));
    std::vector<Bytes> taken(4);
    ASSERT_TRUE(collective.all_to_all(std::vector<Bytes>(4, std::as_bytes(buffer)), taken, soon()).ok());
    for (std::size_t from = 0; from < 4; ++from) {
      EXPECT_EQ(*reinterpret_cast<const float*>(taken[from].data()), static_cast<float>(from));
    }
  });
}

TEST_P(TwoLevelCollective, EndsAtTheDeadlineAndNamesTheRankThatItWaitsForOnEitherLevel) {
  std::latch begun(3);
  with_hosts(GetParam(), {.ranks_by_host = {{0, 1}, {2, 3}}}, [&](Collective& collective, Transport&) {
    const std::span<float> buffer = *collective.allocate(10000);
    if (collective.rank() == 3) return;
    begun.arrive_and_wait();
    const Status status =
        collective.all_reduce(buffer, SteadyClock().now() + std::chrono::seconds(1) * testing_support::kSlowness);
    EXPECT_EQ(status.code(), Code::kDeadlineExceeded) << status.message();
    // Rank 0 waits for rank 2, which waits inside its host.
    const int expected = collective.rank() == 0 ? 2 : 3;
    EXPECT_EQ(collective.missed(), expected);
    EXPECT_NE(status.message().find(fmt::format("waiting for rank {}", expected)), std::string::npos)
        << status.message();
  });
}

TEST_P(TwoLevelCollective, IsInterruptedOnEitherLevelFromAnotherThread) {
  with_hosts(GetParam(), {.ranks_by_host = {{0, 1}, {2, 3}}}, [](Collective& collective, Transport&) {
    const std::span<float> buffer = *collective.allocate(10000);
    if (collective.rank() == 3) return;
    const int awaited = collective.rank() == 0 ? 2 : 3;
    std::jthread interrupter([&] {
      const TimePoint deadline = soon();
      while (collective.waiting_for() != awaited && SteadyClock().now() < deadline) std::this_thread::yield();
      EXPECT_EQ(collective.waiting_for(), awaited);
      collective.interrupt();
    });
    EXPECT_EQ(collective.all_reduce(buffer, soon()).code(), Code::kCancelled);
    interrupter.join();
    EXPECT_EQ(collective.waiting_for(), -1);
  });
}

TEST(TwoLevelCollective, LetsAllOthersReturnWithinTheirDeadlineWhenARankFallsSilent) {
  constexpr Duration kPatience = std::chrono::milliseconds(50);
  constexpr Duration kSlack = std::chrono::seconds(5) * testing_support::kSlowness;
  std::atomic<bool> silent{true};
  std::size_t messages = 0;
  for (; silent && messages < 100; ++messages) {
    SCOPED_TRACE(fmt::format("rank 1 is silent after {} messages", messages));
    const RanksByHost hosts = {{0, 1}, {2, 3}};
    std::vector<std::unique_ptr<DirectCollective>> inside(4);
    const std::string run = fmt::format("silent-{}-{}", getpid(), messages);
    InProcRendezvous rendezvous;
    run_ranks(4, [&](int rank) {
      inside[static_cast<std::size_t>(rank)] = std::move(*connect_inside(run, hosts, rank, rendezvous));
    });
    const auto group = connect_group("inproc", 4);
    run_ranks(4, [&](int rank) {
      MortalTransport transport(*group[static_cast<std::size_t>(rank)], rank == 1 ? messages : 1000);
      const auto collective = on_two_levels(*inside[static_cast<std::size_t>(rank)], transport,
                                            {.segment_bytes = 256, .ranks_by_host = hosts});
      const std::span<float> buffer = *collective->allocate(1000);
      const SteadyClock clock;
      const TimePoint deadline = clock.now() + kPatience;
      const Status status = collective->all_reduce(buffer, deadline);
      EXPECT_LT(clock.now(), deadline + kSlack);
      if (rank == 1) {
        silent = transport.died();
      } else {
        EXPECT_TRUE(status.ok() || status.code() == Code::kDeadlineExceeded) << status.message();
      }
    });
  }
  EXPECT_GT(messages, 4u);
}

TEST(TwoLevelCollective, TellsOnBothLevelsWhenAProcessIsGone) {
  // Rank 3 dies between two operations, and each of the others after it has been told: all must hear of it long before
  // their deadline.
  const std::string run = fmt::format("gone-{}", getpid());
  testing_support::BoardRendezvous of_hosts[2];
  const std::vector<std::vector<double>> told =
      testing_support::run_forked_ranks(4, [&](int rank, Rendezvous& rendezvous) {
        const RanksByHost hosts = {{0, 1}, {2, 3}};
        auto inside = connect_inside(run, hosts, rank, of_hosts[rank / 2]);
        if (!inside.ok()) return std::vector<double>{-1};
        auto transport = make_socket_transport(
            {.run_id = run, .group = "all", .rank = rank, .size = 4, .keys = testing_support::test_keys()}, rendezvous,
            soon());
        if (!transport.ok()) return std::vector<double>{-2};
        const auto collective = on_two_levels(**inside, **transport, {.ranks_by_host = hosts});
        const std::span<float> buffer = *collective->allocate(5000);
        if (!collective->all_reduce(buffer, soon()).ok()) return std::vector<double>{-3};
        if (rank == 3) _exit(0);
        return std::vector<double>{static_cast<double>(collective->all_reduce(buffer, soon()).code())};
      });
  for (const int rank : {0, 1, 2}) {
    ASSERT_EQ(told[static_cast<std::size_t>(rank)].size(), 1u);
    EXPECT_EQ(told[static_cast<std::size_t>(rank)][0], static_cast<double>(Code::kPeerLost)) << rank;
  }
}

}  // namespace
}  // namespace syncopate::allreduce
