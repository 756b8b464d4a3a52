#include "allreduce/strategy/async_gossip_strategy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <mutex>

#include "allreduce/collective/schedule_collective.h"
#include "common/transport/transport_channels.h"
#include "tests/support/cluster.h"
#include "tests/support/rank_host.h"

namespace syncopate::allreduce {
namespace {

using testing::HasSubstr;
using testing_support::all_wires;
using testing_support::connect_group;
using testing_support::run_ranks;

constexpr Duration kTimeout = std::chrono::seconds(60);
constexpr double kRate = 0.5;
// Whole numbers, halves and quarters all the way, so that every sum is exact in whatever order it is made.
const OptimizerConfig kMomentum{.kind = OptimizerKind::kMomentum, .momentum = 0.5f};

ParamLayout layout() {
  ParamLayout layout;
  layout.add("first", {20, 3});
  layout.add("last", {9});
  return layout;
}

using Weights = std::vector<float>;

float initial_weight(std::size_t at) { return static_cast<float>(at % 5); }
float gradient(int rank, std::int64_t step, std::size_t at) {
  return static_cast<float>((7 * rank + 3 * static_cast<int>(step) + static_cast<int>(at)) % 9 - 4);
}

// One worker over its endpoint, on its own thread.
class Member {
 public:
  Member(Transport& endpoint, const AsyncGossipOptions& options)
      : channels_(endpoint, 2),
        ring_(make_schedule_collective(channels_.channel(0), {.clock = &options.threads->clock()})),
        strategy_(*ring_, channels_.channel(1), options, options.threads->clock()) {}

  void join() {
    const Result<ParamArenas> arenas = strategy_.allocate(layout());
    ASSERT_TRUE(arenas.ok()) << arenas.status().message();
    arenas_ = *arenas;
    for (std::size_t i = 0; ring_->rank() == 0 && i < arenas_.weights.size(); ++i) {
      arenas_.weights[i] = initial_weight(i);
    }
    const Result<std::vector<Range>> buckets = strategy_.join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    ASSERT_EQ(buckets->size(), 1u);
  }
  Result<SyncStats> step() {
    strategy_.begin_step({steps_, kRate});
    for (std::size_t i = 0; i < arenas_.gradients.size(); ++i) {
      arenas_.gradients[i] = gradient(ring_->rank(), steps_, i);
    }
    ++steps_;
    strategy_.gradient_ready(0);
    return strategy_.finish_step();
  }
  void leave() {
    const Status left = strategy_.leave();
    ASSERT_TRUE(left.ok()) << left.message();
  }
  Weights weights() const { return {arenas_.weights.begin(), arenas_.weights.end()}; }

 private:
  TransportChannels channels_;
  std::unique_ptr<ScheduleCollective> ring_;
  AsyncGossipStrategy strategy_;
  ParamArenas arenas_;
  std::int64_t steps_ = 0;
};

// Whose turn it is: ranks act one after the other, in a planted order.
class Turns {
 public:
  // The first turn begins once so many ranks are ready.
  Turns(std::vector<int> order, int ranks, Threads& threads)
      : order_(std::move(order)), monitor_(threads.make_monitor()), awaited_(ranks) {}

  void is_ready() {
    const std::lock_guard lock(*monitor_);
    --awaited_;
    monitor_->notify_all();
  }
  // Waits until it is the turn of `rank`, or it has no more.
  bool begin(int rank) {
    const std::lock_guard lock(*monitor_);
    while (has_more(rank) && (awaited_ > 0 || order_[at_] != rank)) monitor_->wait();
    return has_more(rank);
  }
  void end() {
    const std::lock_guard lock(*monitor_);
    ++at_;
    monitor_->notify_all();
  }

 private:
  bool has_more(int rank) const { return std::find(order_.begin() + at(), order_.end(), rank) != order_.end(); }
  std::ptrdiff_t at() const { return static_cast<std::ptrdiff_t>(at_); }

  const std::vector<int> order_;
  const std::unique_ptr<Monitor> monitor_;  // guards the next two
  int awaited_;
  std::size_t at_ = 0;
};

// What one worker is, without any network or thread.
struct Replica {
  void step(int rank) {
    Weights gradients(weights.size());
    for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = gradient(rank, steps, i);
    optimizer.apply(weights, gradients, state, 0, {.learning_rate = static_cast<float>(kRate), .number = ++steps});
    copy = weights;
    met = 0;
  }

  Weights weights = [] {
    Weights initial(layout().size());
    for (std::size_t i = 0; i < initial.size(); ++i) initial[i] = initial_weight(i);
    return initial;
  }();
  Weights copy = weights;
  Optimizer optimizer{kMomentum};
  OptimizerState state{{.kind = OptimizerKind::kMomentum}, layout().size()};
  std::int64_t steps = 0;
  std::int64_t met = 0;  // since its last step
};

void average(Replica& one, Replica& other) {
  for (std::size_t i = 0; i < one.weights.size(); ++i) {
    one.weights[i] = other.weights[i] = (one.weights[i] + other.weights[i]) / 2;
  }
  ++one.met;
  ++other.met;
}

// Over the simulated wire ranks are actors, and times are virtual.
class AsyncGossipOverEveryWire : public testing::TestWithParam<std::string> {
 protected:
  const std::unique_ptr<testing_support::RankHost> host_ =
      GetParam() == "simulated" ? testing_support::simulated_rank_host() : testing_support::real_rank_host(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Wire, AsyncGossipOverEveryWire, testing::ValuesIn(all_wires()),
                         [](const auto& wire) { return wire.param; });
INSTANTIATE_TEST_SUITE_P(InVirtualTime, AsyncGossipOverEveryWire, testing::Values("simulated"),
                         [](const auto& wire) { return wire.param; });

// With a period of two a turn of an active rank is a step behind which it meets somebody, and one that waits for that:
// so all that happens, happens in the order of turns. It begins with a step alone.
TEST_P(AsyncGossipOverEveryWire, ComesToTheWeightsOfThePlantedOrderOfUpdatesAndAverages) {
  constexpr std::uint64_t kSeed = 5;
  for (const auto& [size, order] :
       {std::pair(2, std::vector<int>{1, 0, 0, 1, 1, 0, 1}), std::pair(3, std::vector<int>{0, 2, 1, 2, 0, 1, 0}),
        std::pair(4, std::vector<int>{0, 2, 1, 3, 2, 0, 3, 3, 0, 2, 1})}) {
    std::vector<Replica> replicas(static_cast<std::size_t>(size));
    std::vector<std::int64_t> meetings(static_cast<std::size_t>(size));
    std::vector<std::vector<Weights>> expected(replicas.size());  // by rank and step
    std::vector<std::vector<std::int64_t>> staleness(replicas.size());
    const auto step = [&](int rank) {
      const auto at = static_cast<std::size_t>(rank);
      staleness[at].push_back(replicas[at].met);
      replicas[at].step(rank);
      expected[at].push_back(replicas[at].copy);
    };
    for (int rank = 0; rank < size; rank += 2) step(rank);
    for (const int rank : order) {
      step(rank);
      if (!is_active(rank)) continue;
      const auto at = static_cast<std::size_t>(rank);
      const int partner = gossip_partner(kSeed, rank, meetings[at]++, size);
      average(replicas[at], replicas[static_cast<std::size_t>(partner)]);
      step(rank);
    }
    Weights mean(layout().size());
    for (std::size_t i = 0; i < mean.size(); ++i) {
      for (const Replica& replica : replicas) mean[i] += replica.weights[i];
      mean[i] /= static_cast<float>(size);
    }

    const auto endpoints = host_->connect(size);
    Turns turns(order, size, host_->threads());
    const AsyncGossipOptions options{
        .optimizer = kMomentum, .period = 2, .seed = kSeed, .timeout = kTimeout, .threads = &host_->threads()};
    host_->run_ranks(size, [&](int rank) {
      const auto at = static_cast<std::size_t>(rank);
      Member member(*endpoints[at], options);
      member.join();
      std::size_t steps = 0;
      const auto check_step = [&] {
        const Result<SyncStats> stats = member.step();
        ASSERT_TRUE(stats.ok()) << stats.status().message();
        EXPECT_EQ(member.weights(), expected[at][steps]) << "rank " << rank << ", step " << steps;
        EXPECT_EQ(stats->staleness_max, staleness[at][steps]);
        EXPECT_EQ(stats->staleness_mean, static_cast<double>(staleness[at][steps]));
        // A passive rank may still be counting what the active one has taken already.
        if (is_active(rank)) {
          const bool met = staleness[at][steps] > 0;
          EXPECT_EQ(stats->bytes_out, met ? static_cast<std::int64_t>(layout().size() * sizeof(float)) : 0);
          EXPECT_EQ(stats->bytes_in, stats->bytes_out);
          EXPECT_EQ(stats->communication > Duration::zero(), met);
        }
        ++steps;
      };
      if (is_active(rank)) check_step();
      turns.is_ready();
      while (turns.begin(rank)) {
        check_step();
        if (is_active(rank)) check_step();
        turns.end();
      }
      member.leave();
      EXPECT_EQ(steps, expected[at].size());
      for (std::size_t i = 0; i < mean.size(); ++i) EXPECT_NEAR(member.weights()[i], mean[i], 1e-5) << "rank " << rank;
    });
  }
}

// All as fast as they can: whatever interleaves, averages take nothing away and add nothing, so that in the end all
// have the initial weights less the mean of all that was applied.
TEST_P(AsyncGossipOverEveryWire, KeepsTheSumOfAllReplicasWhateverInterleaves) {
  constexpr std::int64_t kSteps = 40;
  for (const int size : {1, 2, 4, 5}) {
    const auto endpoints = host_->connect(size);
    std::vector<Weights> final_weights(static_cast<std::size_t>(size));
    const AsyncGossipOptions options{
        .optimizer = {}, .period = 1, .seed = 3, .timeout = kTimeout, .threads = &host_->threads()};
    std::atomic<std::int64_t> bytes_out = 0;
    host_->run_ranks(size, [&](int rank) {
      Member member(*endpoints[static_cast<std::size_t>(rank)], options);
      member.join();
      for (std::int64_t step = 0; step < kSteps; ++step) {
        const Result<SyncStats> stats = member.step();
        ASSERT_TRUE(stats.ok()) << stats.status().message();
        if (is_active(rank)) {
          EXPECT_EQ(stats->staleness_max, step > 0 && size > 1 ? 1 : 0);
        }
        bytes_out += stats->bytes_out;
      }
      member.leave();
      final_weights[static_cast<std::size_t>(rank)] = member.weights();
    });
    EXPECT_EQ(bytes_out > 0, size > 1);
    for (const Weights& each : final_weights) EXPECT_EQ(each, final_weights[0]);
    for (std::size_t i = 0; i < final_weights[0].size(); ++i) {
      double sum = 0;
      for (int rank = 0; rank < size; ++rank) {
        for (std::int64_t step = 0; step < kSteps; ++step) sum += gradient(rank, step, i);
      }
      EXPECT_NEAR(final_weights[0][i], initial_weight(i) - kRate * sum / size, 1e-3);
    }
  }
}

// Rank `slow` makes no step before the others have made all of theirs: if anybody waited for it, nothing would ever
// end.
TEST(AsyncGossip, WaitsForNobodyWhoIsSlow) {
  for (int slow = 0; slow < 4; ++slow) {
    const auto endpoints = connect_group("shm", 4);
    std::latch others_are_done(3);
    run_ranks(4, [&](int rank) {
      Member member(*endpoints[static_cast<std::size_t>(rank)], {.period = 1, .timeout = kTimeout});
      member.join();
      if (rank == slow) others_are_done.wait();
      for (int step = 0; step < 50; ++step) {
        const Result<SyncStats> stats = member.step();
        ASSERT_TRUE(stats.ok()) << stats.status().message();
      }
      if (rank != slow) others_are_done.count_down();
      member.leave();
    });
  }
}

TEST(AsyncGossip, OfOneWorkerIsPlainTraining) {
  Replica replica;
  const auto endpoints = connect_group("inproc", 1);
  Member member(*endpoints[0], {.optimizer = kMomentum, .timeout = kTimeout});
  member.join();
  for (int step = 0; step < 5; ++step) {
    replica.step(0);
    EXPECT_EQ(member.step()->bytes_out, 0);
  }
  member.leave();
  EXPECT_EQ(member.weights(), replica.weights);
}

TEST(AsyncGossip, RefusesReplicasOfAnotherModelAndHasNothingToSave) {
  const auto endpoints = connect_group("inproc", 2);
  const SteadyClock clock;
  run_ranks(2, [&](int rank) {
    TransportChannels channels(*endpoints[static_cast<std::size_t>(rank)], 2);
    const auto ring = make_schedule_collective(channels.channel(0));
    AsyncGossipStrategy strategy(*ring, channels.channel(1), {.timeout = kTimeout}, clock);
    ParamLayout other = layout();
    if (rank == 1) other.add("one more", {3});
    ASSERT_TRUE(strategy.allocate(other).ok());
    EXPECT_EQ(strategy.join().status().code(), Code::kInvalidArgument);
    EXPECT_EQ(strategy.resumable(), nullptr);
  });
}

// A partner whose communication has ended, though its endpoint is there: it is silent, not lost.
TEST(AsyncGossip, NamesTheStepAndTheRankThatItWaitedForInVain) {
  const auto host = testing_support::simulated_rank_host();
  Threads& threads = host->threads();
  const auto endpoints = host->connect(2);
  const AsyncGossipOptions options{.timeout = std::chrono::seconds(2), .threads = &threads};
  Turns turns({0}, 1, threads);
  host->run_ranks(2, [&](int rank) {
    Member member(*endpoints[static_cast<std::size_t>(rank)], options);
    member.join();
    if (rank == 1) return turns.is_ready();  // and its communication ends
    ASSERT_TRUE(turns.begin(0));
    EXPECT_TRUE(member.step().ok()) << "its meeting begins behind it";
    const TimePoint asked = threads.clock().now();
    const Status status = member.step().status();
    EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
    EXPECT_THAT(status.message(), HasSubstr("step 1"));
    EXPECT_THAT(status.message(), HasSubstr("rank 1"));
    EXPECT_EQ(threads.clock().now() - asked, options.timeout);
  });
}

TEST(AsyncGossip, IsToldOfALostPartnerInAllThatItDoes) {
  for (const int lost : {0, 1}) {
    auto endpoints = connect_group("shm", 2);
    std::latch joined(2);
    run_ranks(2, [&](int rank) {
      const auto at = static_cast<std::size_t>(rank);
      auto member = std::make_unique<Member>(*endpoints[at], AsyncGossipOptions{.timeout = kTimeout});
      member->join();
      joined.arrive_and_wait();
      if (rank == lost) {
        member.reset();
        endpoints[at].reset();
        return;
      }
      Status status;
      while (status.ok()) status = member->step().status();
      EXPECT_EQ(status.code(), Code::kPeerLost) << status.message();
    });
  }
}

}  // namespace
}  // namespace syncopate::allreduce
