// Weights and gradients on demand, and several passes a step, under a sharded state: what an allreduce of the same
// gradients comes to, and who waits for whom.
#include "allreduce/strategy/on_demand_exchange.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <latch>
#include <memory>

#include "allreduce/collective/schedule_collective.h"
#include "allreduce/strategy/allreduce_strategy.h"
#include "allreduce/strategy/sharded_strategy.h"
#include "common/random.h"
#include "common/transport/faulty_transport.h"
#include "tests/support/cluster.h"

namespace syncopate::allreduce::on_demand {
namespace {

using testing::HasSubstr;
using testing_support::connect_group;
using testing_support::run_ranks;

const OptimizerConfig kSgd{.kind = OptimizerKind::kSgd};
constexpr std::size_t kBucketBytes = 1 << 14;

ParamLayout layout() {
  ParamLayout layout;
  layout.add("first", {80, 133});
  layout.add("second", {61});
  layout.add("third", {70, 90});
  layout.add("fourth", {3});
  return layout;
}

// How gradients are summed.
struct Way {
  int passes = 1;
  bool on_demand = false;
  bool overlap = true;
  std::size_t bucket_bytes = kBucketBytes;
};

// The ranks of a run, over one sort of wire.
class Ranks {
 public:
  Ranks(const std::string& wire, int size, double duplicate = 0)
      : wires_(connect_group(wire, size)), pairs_(connect_group(wire, 2 * size)) {
    for (std::unique_ptr<Transport>& each : pairs_) {
      if (duplicate == 0) break;
      each = std::make_unique<FaultyTransport>(std::move(each), FaultPlan{.duplicate = duplicate, .delay = 0.1});
    }
    for (const auto& each : wires_) {
      collectives_.push_back(make_schedule_collective(*each, {.kind = ScheduleKind::kRing, .segment_bytes = 4096}));
    }
  }

  int size() const { return static_cast<int>(wires_.size()); }
  Collective& collective(int rank) { return *collectives_[static_cast<std::size_t>(rank)]; }
  Transport& answers(int rank) { return *pairs_[static_cast<std::size_t>(size() + rank)]; }
  OnDemandExchange::Endpoints endpoints(int rank) {
    return {.asks = pairs_[static_cast<std::size_t>(rank)].get(), .answers = &answers(rank)};
  }
  std::unique_ptr<SyncStrategy> sharded(int rank, const Way& way, Duration timeout = std::chrono::minutes(1)) {
    return make_sharded_strategy(collective(rank),
                                 {.optimizer = kSgd,
                                  .stage = ShardingStage::kWeights,
                                  .bucket_bytes = way.bucket_bytes,
                                  .passes = way.passes,
                                  .on_demand = way.on_demand ? endpoints(rank) : OnDemandExchange::Endpoints(),
                                  .overlap = way.overlap,
                                  .timeout = timeout},
                                 clock_);
  }
  std::unique_ptr<SyncStrategy> replicated(int rank) {
    return make_allreduce_strategy(
        collective(rank), {.optimizer = kSgd, .bucket_bytes = kBucketBytes, .timeout = std::chrono::minutes(1)},
        clock_);
  }

 private:
  const SteadyClock clock_;
  std::vector<std::unique_ptr<Transport>> wires_, pairs_;
  std::vector<std::unique_ptr<Collective>> collectives_;
};

// What one rank trains. Its gradients depend on the weights as both passes find them, and on its rank, step and pass.
struct Replica {
  std::unique_ptr<SyncStrategy> strategy;
  ParamArenas arenas = {};
  std::vector<Range> buckets = {};

  void join(const TrainingState* state = nullptr) {
    const Result<ParamArenas> allocated = strategy->allocate(layout());
    ASSERT_TRUE(allocated.ok()) << allocated.status().message();
    arenas = *allocated;
    for (std::size_t i = 0; i < layout().size(); ++i) arenas.weights[i] = std::sin(static_cast<float>(i));
    if (state != nullptr) {
      ASSERT_TRUE(strategy->resumable()->restore(*state).ok());
    }
    const Result<std::vector<Range>> joined = strategy->join();
    ASSERT_TRUE(joined.ok()) << joined.status().message();
    buckets = *joined;
  }

  // `hands_over`: each pass's gradients on their own; otherwise all are added up first.
  void run_passes(int rank, std::int64_t step, int passes, bool hands_over) {
    const std::vector<TensorSpec> layers = layout().tensors();
    std::vector<float> sum(layout().size());
    for (int pass = 0; pass < passes; ++pass) {
      Random random(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(100 * step + pass));
      double activation = 0;
      for (const TensorSpec& layer : layers) {
        ASSERT_TRUE(strategy->weights_needed(layer.range).ok());
        for (const float weight : slice(arenas.weights, layer.range)) activation += weight;
      }
      std::size_t bucket = 0;
      for (std::size_t layer = layers.size(); layer-- > 0;) {
        const Range range = layers[layer].range;
        ASSERT_TRUE(strategy->weights_needed_again(range).ok());
        for (std::size_t i = range.begin; i < range.end; ++i) {
          const float drawn = static_cast<float>(random.uniform() - 0.5 + 1e-3 * activation);
          const float gradient = (arenas.weights[i] + drawn) / static_cast<float>(passes);
          sum[i] += gradient;
          arenas.gradients[i] = hands_over ? gradient : sum[i];
        }
        if (!hands_over && pass + 1 < passes) continue;
        for (; bucket < buckets.size() && buckets[bucket].begin >= range.begin; ++bucket) {
          strategy->gradient_ready(bucket);
        }
      }
    }
  }
};

struct End {
  std::vector<float> weights;
  TrainingState state;
  std::int64_t bytes_out = 0;  // of all steps
};

std::vector<End> train(Ranks& ranks, const std::optional<Way>& way, std::int64_t steps, int passes,
                       const TrainingState* state = nullptr, bool evaluates = false) {
  std::vector<End> ends(static_cast<std::size_t>(ranks.size()));
  run_ranks(ranks.size(), [&](int rank) {
    Replica replica{.strategy = way ? ranks.sharded(rank, *way) : ranks.replicated(rank)};
    replica.join(state);
    SyncStrategy& strategy = *replica.strategy;
    End& end = ends[static_cast<std::size_t>(rank)];
    for (std::int64_t step = strategy.first_step(); step < steps; ++step) {
      strategy.begin_step({.step = step, .learning_rate = 0.1});
      replica.run_passes(rank, step, passes, way.has_value());
      const Result<SyncStats> stats = strategy.finish_step();
      ASSERT_TRUE(stats.ok()) << stats.status().message();
      end.bytes_out += stats->bytes_out;
      if (evaluates) {
        ASSERT_TRUE(strategy.gather_weights(rank == 0).ok());
      }
    }
    ASSERT_TRUE(strategy.resumable()->save(end.state).ok());
    ASSERT_TRUE(strategy.gather_weights(true).ok());
    ASSERT_TRUE(strategy.leave().ok());
    end.weights.assign(replica.arenas.weights.begin(), replica.arenas.weights.end());
  });
  return ends;
}

double greatest_gap(const std::vector<float>& first, const std::vector<float>& second) {
  double gap = 0;
  for (std::size_t i = 0; i < first.size(); ++i) gap = std::max(gap, std::abs(double{first[i]} - double{second[i]}));
  return gap;
}

class OnDemandOver : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Wire, OnDemandOver, testing::Values("inproc", "shm", "sockets", "shaped"),
                         [](const auto& wire) { return wire.param; });

TEST_P(OnDemandOver, MakesTheUpdateOfAllGradients) {
  for (const int size : {1, 2, 3, 4}) {
    for (const int passes : {1, 3}) {
      Ranks ranks(GetParam(), size);
      const std::vector<float> expected = train(ranks, std::nullopt, 4, passes).front().weights;
      std::vector<std::int64_t> sent;
      for (const Way& way :
           {Way{.passes = passes}, Way{.passes = passes, .on_demand = true}, Way{.passes = passes, .overlap = false},
            Way{.passes = passes, .on_demand = true, .overlap = false}}) {
        SCOPED_TRACE(testing::Message() << size << " ranks, " << passes << " passes, on demand " << way.on_demand);
        Ranks others(GetParam(), size);
        const std::vector<End> ends = train(others, way, 4, passes);
        EXPECT_LT(greatest_gap(ends.front().weights, expected), 1e-5);
        for (const End& end : ends) EXPECT_EQ(end.weights, ends.front().weights) << "on every rank";
        sent.push_back(0);
        for (const End& end : ends) sent.back() += end.bytes_out;
      }
      // Together all send as much on demand, and answer in a step what a faster rank asks for behind its own last one:
      // here all weights at most.
      const std::int64_t all = (size - 1) * static_cast<std::int64_t>(layout().size() * sizeof(float));
      for (const std::size_t collective : {0, 2}) {
        EXPECT_GE(sent[collective + 1], sent[collective]);
        EXPECT_LE(sent[collective + 1], sent[collective] + all);
      }
    }
  }
}

TEST_P(OnDemandOver, GoesOnFromWhatAnyNumberOfRanksHaveSaved) {
  Ranks three(GetParam(), 3), two(GetParam(), 2), again(GetParam(), 2);
  const Way way{.passes = 2, .on_demand = true};
  TrainingState state;
  const std::vector<End> ends = train(three, way, 3, 2);
  for (const End& end : ends) state.merge(end.state);
  state.step = ends.front().state.step;
  EXPECT_EQ(state.step, 3);
  const std::vector<float> expected = train(two, std::nullopt, 5, 2, &state).front().weights;
  EXPECT_LT(greatest_gap(train(again, way, 5, 2, &state, true).front().weights, expected), 1e-5);
}

// One rank goes through all of its passes while the other is still before its first: with collectives it could not.
TEST_P(OnDemandOver, LetsARankGoThroughItsStepWithoutTheOthers) {
  Ranks ranks(GetParam(), 2);
  std::latch first_is_through(1);
  run_ranks(2, [&](int rank) {
    Replica replica{.strategy = ranks.sharded(rank, {.passes = 3, .on_demand = true})};
    replica.join();
    for (std::int64_t step = 0; step < 3; ++step) {
      replica.strategy->begin_step({.step = step, .learning_rate = 0.1});
      if (rank == 1 && step == 0) first_is_through.wait();
      replica.run_passes(rank, step, 3, true);
      if (rank == 0 && step == 0) first_is_through.count_down();
      ASSERT_TRUE(replica.strategy->finish_step().ok());
    }
    ASSERT_TRUE(replica.strategy->leave().ok());
  });
}

TEST_P(OnDemandOver, NamesWhomItWaitsForInVain) {
  Ranks ranks(GetParam(), 3);
  std::latch has_failed(1);
  run_ranks(3, [&](int rank) {
    Replica replica{.strategy = ranks.sharded(rank, {.passes = 2, .on_demand = true}, std::chrono::seconds(2))};
    replica.join();
    replica.strategy->begin_step({.step = 0, .learning_rate = 0.1});
    if (rank != 1) replica.run_passes(rank, 0, 2, true);
    if (rank != 0) return has_failed.wait();  // it answers meanwhile
    const Status status = replica.strategy->finish_step().status();
    EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
    EXPECT_THAT(status.message(),
                testing::MatchesRegex("step 0: waiting for rank 1: of its gradients of bucket [0-9] 0 of 2 have come"));
    TrainingState state;
    EXPECT_THAT(replica.strategy->resumable()->save(state).message(), HasSubstr("step 0 has failed"));
    has_failed.count_down();
  });
}

// One bucket has all weights, which stay from pass to pass: nothing but its sum is there to wait for. The wire is slow.
TEST(Microbatches, WriteNoGradientWhereThatOfThePassBeforeIsStillSummed) {
  Ranks whole("inproc", 2);
  const std::vector<float> expected = train(whole, std::nullopt, 2, 3).front().weights;
  for (const bool on_demand : {false, true}) {
    Ranks slow("shaped", 2);
    const Way way{.passes = 3, .on_demand = on_demand, .bucket_bytes = 1 << 30};
    for (const End& end : train(slow, way, 2, 3)) EXPECT_LT(greatest_gap(end.weights, expected), 1e-5) << on_demand;
  }
}

// A wire that repeats every message, and holds some back.
TEST(OnDemand, TakesEachGradientOnce) {
  Ranks whole("inproc", 3), repeated("inproc", 3, 1);
  const std::vector<float> expected = train(whole, std::nullopt, 4, 3).front().weights;
  const std::vector<End> ends = train(repeated, Way{.passes = 3, .on_demand = true}, 4, 3);
  EXPECT_LT(greatest_gap(ends.front().weights, expected), 1e-5);
  for (const End& end : ends) EXPECT_EQ(end.weights, ends.front().weights);
}

// An interrupt ends the wait of the one who asks, and that for the update.
TEST(OnDemand, IsInterrupted) {
  Ranks ranks("sockets", 2);
  std::latch joined(2), is_over(1);
  run_ranks(2, [&](int rank) {
    Replica replica{.strategy = ranks.sharded(rank, {.passes = 1, .on_demand = true})};
    replica.join();
    joined.arrive_and_wait();
    if (rank == 1) return is_over.wait();
    replica.strategy->begin_step({.step = 0, .learning_rate = 0.1});
    replica.run_passes(0, 0, 1, true);
    ranks.answers(0).interrupt();
    EXPECT_EQ(replica.strategy->finish_step().status().code(), Code::kCancelled);
    is_over.count_down();
  });
}

}  // namespace
}  // namespace syncopate::allreduce::on_demand
