// Jobs in one process over a wire that delays, duplicates and reorders: they end right, or with a status; they never
// hang, and never sum wrongly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "allreduce/collective/schedule_collective.h"
#include "common/transport/faulty_transport.h"
#include "tests/ps/job/ps_job.h"

namespace syncopate::faults {
namespace {

using std::chrono::milliseconds;
using testing_support::run_ranks;
using testing_support::soon;

constexpr int kWireWorkers = 3;
constexpr int kWireSteps = 40;
constexpr Duration kPatience = std::chrono::seconds(2);

struct Wire {
  const char* name;
  FaultPlan plan;
};
void PrintTo(const Wire& wire, std::ostream* out) { *out << wire.name; }
const auto kNameOfWire = [](const auto& info) { return std::string(info.param.name); };

// As a network may be whose messages from one to another stay in order.
const Wire kLate{"Late", {.delay = 0.2, .delayed_by = milliseconds(1)}};
const Wire kRepeating{"Repeating", {.duplicate = 0.1}};
const Wire kLateAndRepeating{"LateAndRepeating", {.duplicate = 0.1, .delay = 0.2, .delayed_by = milliseconds(1)}};
// As none of ours is.
const Wire kOvertaking{"Overtaking",
                       {.duplicate = 0.05, .delay = 0.1, .delayed_by = milliseconds(1), .overtakes = true}};
const Wire kLosing{"Losing", {.drop = 0.02, .delay = 0.1, .delayed_by = milliseconds(1)}};

FaultPlan seeded(FaultPlan plan, int rank) {
  plan.seed = 11 + static_cast<std::uint64_t>(rank);
  return plan;
}

struct PsOutcome {
  std::vector<Status> workers{kWireWorkers};
  std::vector<std::vector<float>> weights{kWireWorkers};
  ps::ShardServerCounters counters;
};

// One worker to its end, which may be a failure.
Status train(int rank, ps::PsStrategy& strategy, std::vector<float>& weights) {
  const ParamLayout layout = ps::small_layout();
  const Result<ParamArenas> arenas = strategy.allocate(layout);
  if (!arenas.ok()) return arenas.status();
  if (rank == 0) std::iota(arenas->weights.begin(), arenas->weights.end(), 0.0f);
  const Result<std::vector<Range>> buckets = strategy.join();
  if (!buckets.ok()) return buckets.status();
  for (std::int64_t i = 0; i < kWireSteps; ++i) {
    ps::make_gradient(rank, i, arenas->gradients);
    const Result<SyncStats> stats = ps::step(strategy, i, buckets->size(), 0.1);
    if (!stats.ok()) return stats.status();
  }
  SYNCOPATE_RETURN_IF_ERROR(strategy.leave());
  weights.assign(arenas->weights.begin(), arenas->weights.end());
  return {};
}

PsOutcome run_ps(const std::string& consistency, const std::optional<FaultPlan>& plan) {
  ps::PsJobOptions options{
      .group = {.workers = kWireWorkers, .servers = 2}, .consistency = consistency, .chunk_bytes = 512};
  options.worker_timeout = kPatience;
  if (plan) {
    options.wrap = [&](int rank, std::unique_ptr<Transport> inner) {
      return std::make_unique<FaultyTransport>(std::move(inner), seeded(*plan, rank));
    };
  }
  ps::PsJob job(options);
  PsOutcome outcome;
  job.run([&](int rank, ps::PsStrategy& strategy) {
    const auto worker = static_cast<std::size_t>(rank);
    outcome.workers[worker] = train(rank, strategy, outcome.weights[worker]);
    if (!outcome.workers[worker].ok()) job.lose(rank);  // as the coordinator does
  });
  outcome.counters = job.total();
  return outcome;
}

bool all_ok(const PsOutcome& outcome) { return std::ranges::all_of(outcome.workers, &Status::ok); }

class PsOverAWire : public testing::TestWithParam<Wire> {};

INSTANTIATE_TEST_SUITE_P(That, PsOverAWire, testing::Values(kLate, kRepeating, kLateAndRepeating), kNameOfWire);

TEST_P(PsOverAWire, ComesToTheSameWeightsUnderSync) {
  const PsOutcome undisturbed = run_ps("sync", {});
  const PsOutcome outcome = run_ps("sync", GetParam().plan);
  ASSERT_TRUE(all_ok(outcome));
  for (const std::vector<float>& weights : outcome.weights) EXPECT_EQ(weights, undisturbed.weights[0]);
  EXPECT_EQ(outcome.counters.shard.pushes, undisturbed.counters.shard.pushes);
  EXPECT_EQ(outcome.counters.shard.updates, undisturbed.counters.shard.updates);
}

TEST_P(PsOverAWire, AppliesEachPushOnceUnderAsync) {
  const PsOutcome undisturbed = run_ps("async", {});
  const PsOutcome outcome = run_ps("async", GetParam().plan);
  ASSERT_TRUE(all_ok(outcome));
  EXPECT_EQ(outcome.counters.shard.pushes, undisturbed.counters.shard.pushes);
  EXPECT_EQ(outcome.counters.shard.updates, undisturbed.counters.shard.updates);
  // sgd's updates are sums: in whatever order they were made, only rounding differs.
  for (std::size_t i = 0; i < outcome.weights[0].size(); ++i) {
    const float expected = undisturbed.weights[0][i];
    ASSERT_NEAR(outcome.weights[0][i], expected, 1e-5 * std::abs(expected) + 1e-4) << i;
  }
}

TEST(PsOverAWireThatRepeats, CountsWhatItDrops) {
  EXPECT_GT(run_ps("async", kRepeating.plan).counters.dropped, 0);
  EXPECT_EQ(run_ps("async", kLate.plan).counters.dropped, 0);
}

class PsOverABadWire : public testing::TestWithParam<Wire> {};

INSTANTIATE_TEST_SUITE_P(That, PsOverABadWire, testing::Values(kOvertaking, kLosing), kNameOfWire);

TEST_P(PsOverABadWire, EndsRightOrWithAStatus) {
  const PsOutcome undisturbed = run_ps("sync", {});
  const PsOutcome outcome = run_ps("sync", GetParam().plan);
  for (std::size_t worker = 0; worker < kWireWorkers; ++worker) {
    if (all_ok(outcome)) {
      EXPECT_EQ(outcome.weights[worker], undisturbed.weights[0]);
    }
    if (!outcome.workers[worker].ok()) {
      EXPECT_NE(outcome.workers[worker].message(), "");
    }
  }
  EXPECT_LE(outcome.counters.shard.pushes, undisturbed.counters.shard.pushes) << "no push counts twice";
}

struct Sums {
  std::vector<Status> status{kWireWorkers};
  std::vector<int> right = std::vector<int>(kWireWorkers);  // of the sums that a rank was told are there
  std::vector<int> wrong = std::vector<int>(kWireWorkers);
};

// All ranks sum buffers whose sums are known, until one of them fails.
Sums sum_over(const FaultPlan& plan, allreduce::ScheduleKind kind) {
  std::vector<std::unique_ptr<Transport>> endpoints = testing_support::connect_group("inproc", kWireWorkers);
  for (int rank = 0; rank < kWireWorkers; ++rank) {
    std::unique_ptr<Transport>& endpoint = endpoints[static_cast<std::size_t>(rank)];
    endpoint = std::make_unique<FaultyTransport>(std::move(endpoint), seeded(plan, rank));
  }
  Sums sums;
  run_ranks(kWireWorkers, [&](int rank) {
    const auto own = static_cast<std::size_t>(rank);
    const auto collective = allreduce::make_schedule_collective(*endpoints[own], {.kind = kind, .segment_bytes = 256});
    const Result<std::span<float>> buffer = collective->allocate(300);
    ASSERT_TRUE(buffer.ok());
    for (int step = 0; step < kWireSteps && sums.status[own].ok(); ++step) {
      std::ranges::fill(*buffer, static_cast<float>(step + rank));
      sums.status[own] = collective->all_reduce(*buffer, SteadyClock().now() + kPatience / 4);
      if (!sums.status[own].ok()) return;
      const auto expected = static_cast<float>(kWireWorkers * step + 3);
      const bool is_right = std::ranges::all_of(*buffer, [&](float value) { return value == expected; });
      ++(is_right ? sums.right : sums.wrong)[own];
    }
  });
  return sums;
}

class AllReduceOverAWire : public testing::TestWithParam<Wire> {};

INSTANTIATE_TEST_SUITE_P(That, AllReduceOverAWire,
                         testing::Values(kLate, kRepeating, kLateAndRepeating, kOvertaking, kLosing), kNameOfWire);

TEST_P(AllReduceOverAWire, SumsRightOrEndsWithAStatusOnEverySchedule) {
  using allreduce::ScheduleKind;
  for (const ScheduleKind kind : {ScheduleKind::kDirect, ScheduleKind::kRing, ScheduleKind::kHalvingDoubling,
                                  ScheduleKind::kDoubling, ScheduleKind::kTree, ScheduleKind::kBinomialTree}) {
    SCOPED_TRACE(allreduce::name_of(kind));
    const Sums sums = sum_over(GetParam().plan, kind);
    EXPECT_THAT(sums.wrong, testing::Each(0));
    const bool in_order = !GetParam().plan.overtakes && GetParam().plan.drop == 0;
    if (in_order) {
      EXPECT_THAT(sums.right, testing::Each(kWireSteps));
    }
    for (const Status& status : sums.status) {
      if (!status.ok()) {
        EXPECT_NE(status.message(), "");
      }
    }
  }
}

}  // namespace
}  // namespace syncopate::faults
