// The strategies as they are, with their own code, in virtual time: what they compute is what they compute on threads
// and real wires, and takes the time that formulas say.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "allreduce/collective/schedule_collective.h"
#include "allreduce/strategy/allreduce_strategy.h"
#include "ps/client/ps_strategy.h"
#include "ps/server/shard_server.h"
#include "simulation/simulated_wire.h"
#include "simulation/world_threads.h"
#include "tests/ps/job/consistency_text.h"
#include "tests/simulation/ten_gigabit.h"
#include "tests/support/cluster.h"

namespace syncopate::simulation {
namespace {

constexpr Duration kPatience = std::chrono::seconds(60);
const OptimizerConfig kMomentum{.kind = OptimizerKind::kMomentum};

struct Job {
  int workers = 4, shards = 0;  // no shards: allreduce
  std::string consistency = "sync";
  allreduce::ScheduleKind schedule = allreduce::ScheduleKind::kRing;
  std::int64_t elements = 10'000;
  std::size_t bucket_bytes = 8192;
  int steps = 5;
  bool compute_takes_time = true;
  // In a world, what takes a nanosecond a byte.
  std::vector<Processing> processing = {};

  int size() const { return workers + shards; }
  ps::PsGroup group() const { return {.workers = workers, .servers = shards}; }
};

// Where a job runs: on threads over a real wire, or in a world.
struct Place {
  const Clock& clock;
  Threads& threads;
  std::function<void(Duration)> sleep;
};

// One replica's training. Its gradients depend on its weights, so that a wrong bit in one step changes all that follow.
std::vector<float> train(SyncStrategy& strategy, int rank, const Job& job, const Place& place) {
  ParamLayout layout;
  layout.add("first", {job.elements / 4, 3});
  layout.add("last", {job.elements - job.elements / 4 * 3});
  const Result<ParamArenas> arenas = strategy.allocate(layout);
  EXPECT_TRUE(arenas.ok()) << arenas.status().message();
  for (std::size_t i = 0; rank == 0 && i < layout.size(); ++i) arenas->weights[i] = 0.01f * static_cast<float>(i % 13);
  const Result<std::vector<Range>> buckets = strategy.join();
  EXPECT_TRUE(buckets.ok()) << buckets.status().message();
  if (!buckets.ok()) return {};
  for (int step = 0; step < job.steps; ++step) {
    strategy.begin_step({.step = step, .learning_rate = 0.1});
    EXPECT_TRUE(strategy.weights_needed({0, layout.size()}).ok());
    for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) {
      const Range range = (*buckets)[bucket];
      for (std::size_t i = range.begin; i < range.end; ++i) {
        arenas->gradients[i] =
            arenas->weights[i] * 0.3f + 0.01f * static_cast<float>((static_cast<int>(i) + 3 * rank) % 7);
      }
      if (job.compute_takes_time) place.sleep(std::chrono::microseconds(20 + 7 * rank));
      strategy.gradient_ready(bucket);
    }
    const Result<SyncStats> stats = strategy.finish_step();
    EXPECT_TRUE(stats.ok()) << stats.status().message();
  }
  EXPECT_TRUE(strategy.leave().ok());
  return {arenas->weights.begin(), arenas->weights.end()};
}

// What member `rank` of the job does; workers return their last weights.
std::vector<float> take_part(Transport& endpoint, const Job& job, const Place& place) {
  const int rank = endpoint.rank();
  if (job.shards == 0) {
    const auto collective =
        allreduce::make_schedule_collective(endpoint, {.kind = job.schedule, .clock = &place.clock});
    allreduce::AllReduceOptions options;
    options.optimizer = kMomentum;
    options.bucket_bytes = job.bucket_bytes;
    options.timeout = kPatience;
    options.threads = &place.threads;
    const auto strategy = allreduce::make_allreduce_strategy(*collective, options, place.clock);
    return train(*strategy, rank, job, place);
  }
  const ps::PsGroup group = job.group();
  if (group.is_worker(rank)) {
    ps::PsStrategy strategy({.group = group, .sharding = {.chunk_bytes = job.bucket_bytes}, .timeout = kPatience},
                            endpoint, place.clock, nullptr);
    return train(strategy, rank, job, place);
  }
  ps::ShardServer server({.group = group,
                          .consistency = ps::consistency_of(job.consistency),
                          .optimizer = kMomentum,
                          .timeout = kPatience},
                         endpoint, place.clock);
  const Status served = server.serve();
  EXPECT_TRUE(served.ok()) << served.message();
  return {};
}

struct Outcome {
  std::vector<std::vector<float>> weights;  // by worker
  double seconds = 0;                       // virtual
};

Outcome in_a_world(const Job& job) {
  World world;
  for (const Processing what : job.processing) world.set_seconds_per_byte(what, 1e-9);
  WorldThreads threads(world);
  SimulatedWire wire(world, ten_gigabit(job.size()), {});
  const auto endpoints = wire.connect(one_each(job.size()));
  const Place place{world.clock(), threads, [&](Duration time) { world.sleep_until(world.now() + time); }};
  Outcome outcome;
  outcome.weights.resize(static_cast<std::size_t>(job.workers));
  const TimePoint begin = world.now();
  for (int rank = 0; rank < job.size(); ++rank) {
    world.start(fmt::format("rank {}", rank), [&, rank] {
      std::vector<float> weights = take_part(*endpoints[static_cast<std::size_t>(rank)], job, place);
      if (rank < job.workers) outcome.weights[static_cast<std::size_t>(rank)] = std::move(weights);
    });
  }
  const Status status = world.run();
  EXPECT_TRUE(status.ok()) << status.message();
  outcome.seconds = seconds(world.now() - begin);
  return outcome;
}

Outcome on_threads(const Job& job) {
  const SteadyClock clock;
  const Place place{clock, os_threads(), [](Duration) {}};
  const auto endpoints = testing_support::connect_group("inproc", job.size());
  Outcome outcome;
  outcome.weights.resize(static_cast<std::size_t>(job.workers));
  testing_support::run_ranks(job.size(), [&](int rank) {
    std::vector<float> weights = take_part(*endpoints[static_cast<std::size_t>(rank)], job, place);
    if (rank < job.workers) outcome.weights[static_cast<std::size_t>(rank)] = std::move(weights);
  });
  return outcome;
}

// How much longer the job takes, in nanoseconds a step and byte of the model, where this takes one a byte.
double price_of(Processing what, Job job) {
  job.steps = 50;
  job.elements = 40'000;
  job.bucket_bytes = 1 << 20;  // one bucket, and one chunk a shard
  const double without = in_a_world(job).seconds;
  job.processing = {what};
  return (in_a_world(job).seconds - without) * 1e9 / (50 * 4 * 40'000);
}

// Each worker adds (n - 1) parts of an n-th up, and updates all.
TEST(StrategiesInAWorld, WhatAnAllReduceSumsAndUpdatesTakesItsTime) {
  EXPECT_NEAR(price_of(Processing::kSum, {.workers = 4}), 0.75, 0.05);
  EXPECT_NEAR(price_of(Processing::kUpdate, {.workers = 4}), 1, 0.05);
}

// Two servers with a half each: when the last of four pushes is there, three are added to the first; one update
// follows.
TEST(StrategiesInAWorld, WhatAServerSumsAndUpdatesTakesItsTime) {
  EXPECT_NEAR(price_of(Processing::kSum, {.workers = 4, .shards = 2}), 1.5, 0.1);
  EXPECT_NEAR(price_of(Processing::kUpdate, {.workers = 4, .shards = 2}), 0.5, 0.05);
}

TEST(StrategiesInAWorld, AllReduceTrainsToTheSameBitsAsOnThreads) {
  using Kind = allreduce::ScheduleKind;
  for (const Kind kind : {Kind::kRing, Kind::kHalvingDoubling, Kind::kTree, Kind::kDirect}) {
    const Job job{.workers = 5, .schedule = kind};
    const Outcome simulated = in_a_world(job);
    EXPECT_EQ(simulated.weights, on_threads(job).weights) << name_of(kind);
    EXPECT_EQ(simulated.weights.front(), simulated.weights.back());
  }
}

TEST(StrategiesInAWorld, SynchronousParameterServersTrainToTheSameBitsAsOnThreads) {
  const Job job{.workers = 3, .shards = 2};
  const Outcome simulated = in_a_world(job);
  EXPECT_EQ(simulated.weights, on_threads(job).weights);
  EXPECT_EQ(simulated.weights.front(), simulated.weights.back());
}

TEST(StrategiesInAWorld, AsynchronousParameterServersRepeatExactly) {
  const Job job{.workers = 4, .shards = 2, .consistency = "async", .steps = 20};
  const Outcome first = in_a_world(job), second = in_a_world(job);
  EXPECT_EQ(first.weights, second.weights);
  EXPECT_EQ(first.seconds, second.seconds);
}

// A ring of n moves 2 (n - 1) / n of the gradients, and passes the latency 2 (n - 1) times, in each step.
TEST(StrategiesInAWorld, AStepOfTheRingTakesItsTime) {
  Job job{.workers = 8, .elements = 1 << 18, .bucket_bytes = 1 << 30, .compute_takes_time = false};
  const auto time_of = [&](int steps) {
    job.steps = steps;
    return in_a_world(job).seconds;
  };
  const double step = (time_of(12) - time_of(2)) / 10;
  const double bytes = static_cast<double>(job.elements) * sizeof(float);
  EXPECT_NEAR(step / (14 * (seconds(kLatency) + bytes / 8 / k10Gbit)), 1, 0.002);
}

// n workers push to and pull from k shards of C chunks each: the links of a shard carry nM/k each way, at once but for
// one chunk, (1 + 1/C) nM/(kB) + 2 alpha a step.
TEST(StrategiesInAWorld, AStepOfParameterServersTakesItsTime) {
  constexpr int kChunks = 16;
  Job job{.workers = 4, .shards = 2, .elements = 1 << 18, .compute_takes_time = false};
  const double bytes = static_cast<double>(job.elements) * sizeof(float);
  job.bucket_bytes = static_cast<std::size_t>(bytes) / 2 / kChunks;
  const auto time_of = [&](int steps) {
    job.steps = steps;
    return in_a_world(job).seconds;
  };
  const double step = (time_of(12) - time_of(2)) / 10;
  const double expected = (1 + 1.0 / kChunks) * 4 * bytes / (2 * k10Gbit) + 2 * seconds(kLatency);
  EXPECT_NEAR(step / expected, 1, 0.03);
}

}  // namespace
}  // namespace syncopate::simulation
