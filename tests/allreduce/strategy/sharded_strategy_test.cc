// ShardedStrategy: the bits of AllReduceStrategy, with a share of its state.
#include "allreduce/strategy/sharded_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "allreduce/collective/schedule_collective.h"
#include "allreduce/strategy/allreduce_strategy.h"
#include "common/param_layout.h"
#include "common/random.h"
#include "tests/support/cluster.h"
#include "tests/support/direct_group.h"

namespace syncopate::allreduce {
namespace {

using testing_support::run_ranks;
using testing_support::soon;

const OptimizerConfig kAdam{.kind = OptimizerKind::kAdam, .weight_decay = 0.01f};

constexpr std::size_t kBucketBytes = 1 << 15;  // some pages for each of a few ranks

ParamLayout layout() {
  ParamLayout layout;
  layout.add("first", {160, 233});  // more than is gathered ahead
  layout.add("middle", {160, 233});
  layout.add("second", {61});
  layout.add("third", {9, 5});
  return layout;
}

// A way to sum, and the ranks that do.
struct Group {
  std::vector<std::unique_ptr<Transport>> wires;
  std::vector<std::unique_ptr<Collective>> collectives;
};

Group connect(const std::string& way, int size) {
  Group group;
  if (way == "in memory") {
    group.collectives = testing_support::connect_direct(size);
    return group;
  }
  const ScheduleKind kind = *parse_schedule_kind(way.substr(0, way.find(' ')));
  group.wires = testing_support::connect_group(way.substr(way.find(' ') + 1), size);
  for (const auto& wire : group.wires) {
    group.collectives.push_back(make_schedule_collective(*wire, {.kind = kind, .segment_bytes = 4096}));
  }
  return group;
}

struct End {
  std::vector<float> weights;
  TrainingState state;
  std::int64_t bytes_out = 0;  // of one step
};

using MakeStrategy = std::function<std::unique_ptr<SyncStrategy>(Collective&, const Clock&)>;

MakeStrategy sharded(ShardingStage stage, bool overlap = true) {
  return [=](Collective& collective, const Clock& clock) {
    return make_sharded_strategy(collective,
                                 {.optimizer = kAdam,
                                  .stage = stage,
                                  .bucket_bytes = kBucketBytes,
                                  .overlap = overlap,
                                  .timeout = std::chrono::minutes(1)},
                                 clock);
  };
}

std::unique_ptr<SyncStrategy> replicated(Collective& collective, const Clock& clock) {
  return make_allreduce_strategy(
      collective, {.optimizer = kAdam, .bucket_bytes = kBucketBytes, .timeout = std::chrono::minutes(1)}, clock);
}

// A step of a model whose gradients depend on weights as both passes find them.
void run_passes(SyncStrategy& strategy, const ParamArenas& arenas, const std::vector<Range>& buckets, Random& random) {
  const std::vector<TensorSpec> layers = layout().tensors();
  double activation = 0;
  for (const TensorSpec& layer : layers) {
    ASSERT_TRUE(strategy.weights_needed(layer.range).ok());
    for (const float weight : slice(arenas.weights, layer.range)) activation += weight;
  }
  std::size_t bucket = 0;
  for (std::size_t layer = layers.size(); layer-- > 0;) {
    const Range range = layers[layer].range;
    ASSERT_TRUE(strategy.weights_needed_again(range).ok());
    for (std::size_t i = range.begin; i < range.end; ++i) {
      arenas.gradients[i] = arenas.weights[i] + static_cast<float>(random.uniform() - 0.5 + 1e-3 * activation);
    }
    for (; bucket < buckets.size() && buckets[bucket].begin >= range.begin; ++bucket) strategy.gradient_ready(bucket);
  }
}

// Trains `size` ranks until `steps` are done, from `state` on unless it is null.
std::vector<End> train(const std::string& way, int size, const MakeStrategy& make, std::int64_t steps,
                       const TrainingState* state = nullptr) {
  const Group group = connect(way, size);
  const SteadyClock clock;
  std::vector<End> ends(static_cast<std::size_t>(size));
  run_ranks(size, [&](int rank) {
    Collective& collective = *group.collectives[static_cast<std::size_t>(rank)];
    const auto strategy = make(collective, clock);
    const Result<ParamArenas> arenas = strategy->allocate(layout());
    ASSERT_TRUE(arenas.ok()) << arenas.status().message();
    for (std::size_t i = 0; i < layout().size(); ++i) {
      arenas->weights[i] = rank == 0 ? std::sin(static_cast<float>(i)) : -1.0f;
    }
    if (state != nullptr) ASSERT_TRUE(strategy->resumable()->restore(*state).ok());
    const auto buckets = strategy->join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    End& end = ends[static_cast<std::size_t>(rank)];
    for (std::int64_t step = strategy->first_step(); step < steps; ++step) {
      Random random(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step));
      strategy->begin_step({.step = step, .learning_rate = 0.01});
      run_passes(*strategy, *arenas, *buckets, random);
      const Result<SyncStats> stats = strategy->finish_step();
      ASSERT_TRUE(stats.ok()) << stats.status().message();
      end.bytes_out = stats->bytes_out;
      ASSERT_TRUE(strategy->gather_weights(rank == 0).ok());
    }
    ASSERT_TRUE(strategy->resumable()->save(end.state).ok());
    ASSERT_TRUE(strategy->gather_weights(true).ok());
    ASSERT_TRUE(strategy->leave().ok());
    end.weights.assign(arenas->weights.begin(), arenas->weights.end());
  });
  return ends;
}

TrainingState merged(const std::vector<End>& ends) {
  TrainingState state;
  for (const End& end : ends) state.merge(end.state);
  state.step = ends.front().state.step;
  return state;
}

class EachWay : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(ShardedStrategy, EachWay,
                         testing::Values("ring inproc", "ring shm", "direct sockets", "in memory"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           name[name.find(' ')] = '_';
                           return name;
                         });

// What a stage sends to what an allreduce sends. At stage 3 both passes gather the weights, but backward those
// that are not there: with overlap the first layer's alone, without it all but the last one's.
double bytes_of(ShardingStage stage, bool overlap) {
  if (stage != ShardingStage::kWeights) return 1;
  const std::vector<TensorSpec> layers = layout().tensors();
  const std::size_t there_from = (overlap ? layers[1] : layers.back()).range.begin;
  std::size_t gathered = layout().size();
  for (const Range& bucket : buckets_in_backward_order(layout(), kBucketBytes)) {
    if (bucket.end <= there_from) gathered += bucket.size();
  }
  return (1 + static_cast<double>(gathered) / static_cast<double>(layout().size())) / 2;
}

TEST_P(EachWay, LeavesTheBitsOfAllReduceAndSendsWhatItsStageSends) {
  for (const int size : {1, 2, 3, 4}) {
    const std::vector<End> expected = train(GetParam(), size, replicated, 5);
    for (const ShardingStage stage : {ShardingStage::kOptimizer, ShardingStage::kGradients, ShardingStage::kWeights}) {
      for (const bool overlap : {true, false}) {
        SCOPED_TRACE(testing::Message() << size << " ranks, stage " << static_cast<int>(stage));
        const std::vector<End> ends = train(GetParam(), size, sharded(stage, overlap), 5);
        for (const End& end : ends) {
          ASSERT_EQ(end.weights, expected.front().weights);
          // Parts of a bucket differ by their alignment.
          const double bytes = bytes_of(stage, overlap) * static_cast<double>(expected.front().bytes_out);
          EXPECT_NEAR(static_cast<double>(end.bytes_out), bytes, 0.02 * bytes);
        }
        const TrainingState state = merged(ends);
        for (const std::string& name : expected.front().state.names()) {
          std::vector<float> own(layout().size()), theirs(layout().size());
          ASSERT_TRUE(state.read(name, {0, layout().size()}, own).ok()) << name;
          ASSERT_TRUE(expected.front().state.read(name, {0, layout().size()}, theirs).ok());
          EXPECT_EQ(own, theirs) << name;
        }
      }
    }
  }
}

TEST_P(EachWay, SavesItsShareAlone) {
  constexpr int kRanks = 4;
  for (const End& end : train(GetParam(), kRanks, sharded(ShardingStage::kOptimizer), 2)) {
    for (const std::string& name : end.state.names()) {
      std::size_t elements = 0;
      for (const Range& piece : end.state.pieces(name)) elements += piece.size();
      const double share = static_cast<double>(layout().size()) / kRanks;
      EXPECT_NEAR(static_cast<double>(elements), share, 0.05 * share) << name;
    }
  }
}

// From the state of any number of ranks, and from that of an allreduce, it goes on as an allreduce does.
TEST_P(EachWay, GoesOnFromWhatAnyNumberOfRanksHaveSaved) {
  const TrainingState whole = merged(train(GetParam(), 3, replicated, 3));
  const TrainingState parts = merged(train(GetParam(), 3, sharded(ShardingStage::kOptimizer), 3));
  for (const int size : {2, 3}) {
    const std::vector<float> expected = train(GetParam(), size, replicated, 6, &whole).front().weights;
    for (const TrainingState* state : {&whole, &parts}) {
      for (const ShardingStage stage : {ShardingStage::kGradients, ShardingStage::kWeights}) {
        for (const End& end : train(GetParam(), size, sharded(stage), 6, state)) {
          EXPECT_EQ(end.weights, expected) << size << " ranks";
        }
      }
    }
    EXPECT_EQ(train(GetParam(), size, replicated, 6, &parts).front().weights, expected)
        << "an allreduce goes on from it";
  }
}

// Pages that were given back read as zeros.
TEST_P(EachWay, HoldsItsShareOfTheWeightsThatAreNotAskedFor) {
  constexpr int kRanks = 4;
  const Group group = connect(GetParam(), kRanks);
  const SteadyClock clock;
  run_ranks(kRanks, [&](int rank) {
    const auto strategy = sharded(ShardingStage::kWeights)(*group.collectives[static_cast<std::size_t>(rank)], clock);
    const ParamArenas arenas = *strategy->allocate(layout());
    std::ranges::fill(arenas.weights, 1.0f);
    const auto buckets = strategy->join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    const Range large = layout().tensors().front().range, last = layout().tensors().back().range;
    const auto held = [&](Range range) {
      const std::span<const float> part = slice(arenas.weights, range);
      return static_cast<double>(std::ranges::count(part, 1.0f)) / static_cast<double>(range.size());
    };
    const double share = 1.0 / kRanks, pages = 0.15;
    EXPECT_NEAR(held(large), share, pages) << "once all have joined";
    strategy->begin_step({});
    ASSERT_TRUE(strategy->weights_needed(large).ok());
    EXPECT_EQ(held(large), 1);
    ASSERT_TRUE(strategy->weights_needed(last).ok());
    EXPECT_EQ(held(last), 1);
    EXPECT_NEAR(held(large), share, pages) << "after another layer's";
    ASSERT_TRUE(strategy->weights_needed_again(large).ok());
    for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) strategy->gradient_ready(bucket);
    ASSERT_TRUE(strategy->finish_step().ok());
    ASSERT_TRUE(strategy->gather_weights(rank == 1).ok());
    EXPECT_NEAR(held(large), rank == 1 ? 1 : share, pages) << "of those who wanted them";
    ASSERT_TRUE(strategy->leave().ok());
  });
}

TEST(ShardedStrategy, RanksThatGoOnFromOtherStepsAreTold) {
  const TrainingState state = merged(train("ring inproc", 2, sharded(ShardingStage::kOptimizer), 3));
  const Group group = connect("ring inproc", 2);
  const SteadyClock clock;
  run_ranks(2, [&](int rank) {
    const auto strategy = sharded(ShardingStage::kOptimizer)(*group.collectives[static_cast<std::size_t>(rank)], clock);
    ASSERT_TRUE(strategy->allocate(layout()).ok());
    if (rank == 1) ASSERT_TRUE(strategy->resumable()->restore(state).ok());
    const Status status = strategy->join().status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(),
                testing::HasSubstr(rank == 0 ? "rank 1 goes on from step 3" : "rank 0 goes on from step 0"));
  });
}

TEST(ShardedStrategy, AStepThatHasFailedIsNotSaved) {
  const Group group = connect("ring inproc", 2);
  const SteadyClock clock;
  run_ranks(2, [&](int rank) {
    Collective& collective = *group.collectives[static_cast<std::size_t>(rank)];
    const auto strategy = make_sharded_strategy(
        collective, {.optimizer = kAdam, .bucket_bytes = 1024, .timeout = std::chrono::seconds(1)}, clock);
    ASSERT_TRUE(strategy->allocate(layout()).ok());
    TrainingState state;
    EXPECT_EQ(strategy->resumable()->save(state).code(), Code::kInvalidArgument) << "before join";
    ASSERT_TRUE(strategy->join().ok());
    if (rank == 1) return;  // it makes no step
    strategy->begin_step({.step = 0, .learning_rate = 0.1});
    EXPECT_EQ(strategy->finish_step().status().code(), Code::kDeadlineExceeded);
    EXPECT_THAT(strategy->resumable()->save(state).message(), testing::HasSubstr("step 0 has failed"));
  });
}

TEST(ShardedStrategy, RefusesTables) {
  const Group group = connect("ring inproc", 1);
  ParamLayout with_table;
  with_table.add_table("rows", 30, 3, {.rows_a_step = 8, .limit = 0.5f});
  const SteadyClock clock;
  const auto strategy = sharded(ShardingStage::kOptimizer)(*group.collectives.front(), clock);
  EXPECT_EQ(strategy->allocate(with_table).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace syncopate::allreduce
