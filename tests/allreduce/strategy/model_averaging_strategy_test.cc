#include "allreduce/strategy/model_averaging_strategy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "allreduce/collective/schedule_collective.h"
#include "tests/support/cluster.h"

namespace syncopate::allreduce {
namespace {

using testing_support::all_wires;
using testing_support::connect_group;
using testing_support::run_ranks;

constexpr Duration kTimeout = std::chrono::seconds(60);
constexpr double kRate = 0.5;
// Whole numbers, halves and quarters all the way, so that every sum is exact in whatever order it is made.
const OptimizerConfig kMomentum{.kind = OptimizerKind::kMomentum, .momentum = 0.5f};

ParamLayout layout_with(std::int64_t last) {
  ParamLayout layout;
  layout.add("first", {20, 3});
  layout.add("last", {last});
  return layout;
}

// Zero in the padding behind a tensor, as in every arena.
bool is_padding(std::size_t at) {
  const std::vector<TensorSpec> tensors = layout_with(9).tensors();
  return std::ranges::none_of(tensors, [&](const auto& each) { return each.range.begin <= at && at < each.range.end; });
}

float initial_weight(std::size_t at) { return is_padding(at) ? 0 : static_cast<float>(at % 5); }
float gradient(int rank, std::int64_t step, std::size_t at) {
  if (is_padding(at)) return 0;
  return static_cast<float>((7 * rank + 3 * static_cast<int>(step) + static_cast<int>(at)) % 9 - 4);
}

using Weights = std::vector<float>;

// What one worker is, without any network: weights and the optimizer's memory.
struct Replica {
  explicit Replica(const OptimizerConfig& config = kMomentum) : optimizer(config) {}

  void step(int rank, std::int64_t number) {
    Weights gradients(weights.size());
    for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = gradient(rank, number, i);
    optimizer.apply(weights, gradients, state, 0, {.learning_rate = static_cast<float>(kRate), .number = number + 1});
  }

  Weights weights = [] {
    Weights initial(layout_with(9).size());
    for (std::size_t i = 0; i < initial.size(); ++i) initial[i] = initial_weight(i);
    return initial;
  }();
  Optimizer optimizer;
  OptimizerState state{optimizer.config(), layout_with(9).size()};
};

Weights mean_of(const std::vector<Replica>& replicas) {
  Weights mean(replicas[0].weights.size());
  for (std::size_t i = 0; i < mean.size(); ++i) {
    for (const Replica& replica : replicas) mean[i] += replica.weights[i];
    mean[i] /= static_cast<float>(replicas.size());
  }
  return mean;
}

void meet_in_pairs(std::vector<Replica>& replicas, const std::vector<int>& partners) {
  std::vector<Weights> old;
  for (const Replica& replica : replicas) old.push_back(replica.weights);
  for (std::size_t rank = 0; rank < replicas.size(); ++rank) {
    const Weights& others = old[static_cast<std::size_t>(partners[rank])];
    for (std::size_t i = 0; i < others.size(); ++i) replicas[rank].weights[i] = (old[rank][i] + others[i]) / 2;
  }
}

// Trains `steps` steps on every rank and leaves; `after(rank, step, stats, weights)` is called after each of them. The
// final weights by rank.
using After = std::function<void(int, std::int64_t, const SyncStats&, std::span<const float>)>;
std::vector<Weights> train(const std::string& wire, int size, std::int64_t steps, const ModelAveragingOptions& options,
                           const After& after) {
  const auto endpoints = connect_group(wire, size);
  const SteadyClock clock;
  std::vector<Weights> final_weights(endpoints.size());
  run_ranks(size, [&](int rank) {
    const auto ring = make_schedule_collective(*endpoints[static_cast<std::size_t>(rank)]);
    ModelAveragingStrategy strategy(*ring, options, clock);
    const Result<ParamArenas> arenas = strategy.allocate(layout_with(9));
    ASSERT_TRUE(arenas.ok()) << arenas.status().message();
    for (std::size_t i = 0; rank == 0 && i < arenas->weights.size(); ++i) arenas->weights[i] = initial_weight(i);
    const Result<std::vector<Range>> buckets = strategy.join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    for (std::int64_t step = 0; step < steps; ++step) {
      strategy.begin_step({step, kRate});
      for (std::size_t i = 0; i < arenas->gradients.size(); ++i) arenas->gradients[i] = gradient(rank, step, i);
      for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) strategy.gradient_ready(bucket);
      const Result<SyncStats> stats = strategy.finish_step();
      ASSERT_TRUE(stats.ok()) << stats.status().message();
      after(rank, step, *stats, arenas->weights);
    }
    const Status left = strategy.leave();
    ASSERT_TRUE(left.ok()) << left.message();
    final_weights[static_cast<std::size_t>(rank)].assign(arenas->weights.begin(), arenas->weights.end());
  });
  return final_weights;
}

class ModelAveragingOverEveryWire : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Wire, ModelAveragingOverEveryWire, testing::ValuesIn(all_wires()),
                         [](const auto& wire) { return wire.param; });

// Seven steps, of which the last, for periods of 2 and 3, are agreed on when the workers leave.
TEST_P(ModelAveragingOverEveryWire, GoesOnFromTheMeanOfWhatWorkersComeToByThemselves) {
  constexpr std::int64_t kSteps = 7;
  for (const int size : {1, 2, 4}) {
    for (const std::int64_t period : {1, 2, 3, 7}) {
      std::vector<Replica> replicas(static_cast<std::size_t>(size));
      std::vector<std::vector<Weights>> expected;  // by step and rank
      for (std::int64_t step = 0; step < kSteps; ++step) {
        for (int rank = 0; rank < size; ++rank) replicas[static_cast<std::size_t>(rank)].step(rank, step);
        if ((step + 1) % period == 0) {
          const Weights mean = mean_of(replicas);
          for (Replica& replica : replicas) replica.weights = mean;
        }
        expected.emplace_back();
        for (const Replica& replica : replicas) expected.back().push_back(replica.weights);
      }
      const std::vector<Weights> final_weights =
          train(GetParam(), size, kSteps, {.optimizer = kMomentum, .period = period, .timeout = kTimeout},
                [&](int rank, std::int64_t step, const SyncStats& stats, std::span<const float> weights) {
                  const Weights& own = expected[static_cast<std::size_t>(step)][static_cast<std::size_t>(rank)];
                  EXPECT_TRUE(std::ranges::equal(weights, own)) << "rank " << rank << ", step " << step;
                  const bool met = (step + 1) % period == 0;
                  EXPECT_EQ(stats.bytes_out > 0, met && size > 1);
                  EXPECT_EQ(stats.communication, stats.exposed_wait);
                  EXPECT_EQ(stats.exposed_wait > Duration::zero(), met);
                });
      for (const Weights& each : final_weights) EXPECT_EQ(each, mean_of(replicas)) << size << ", every " << period;
    }
  }
}

// The pairs are those of the pure function; four ranks halve and add whole numbers, so that all is exact.
TEST_P(ModelAveragingOverEveryWire, GossipsInPairsAndKeepsTheMeanOfAllWeights) {
  constexpr std::int64_t kSteps = 8;
  constexpr std::uint64_t kSeed = 5;
  for (const int size : {1, 2, 4}) {
    for (const std::int64_t period : {1, 3}) {
      std::vector<Replica> replicas(static_cast<std::size_t>(size));
      std::vector<std::vector<Weights>> expected;  // by step and rank
      for (std::int64_t step = 0; step < kSteps; ++step) {
        for (int rank = 0; rank < size; ++rank) replicas[static_cast<std::size_t>(rank)].step(rank, step);
        const Weights mean = mean_of(replicas);
        if ((step + 1) % period == 0) meet_in_pairs(replicas, gossip_pairs(kSeed, step / period, size));
        EXPECT_EQ(mean_of(replicas), mean) << "a meeting has moved the mean";
        expected.emplace_back();
        for (const Replica& replica : replicas) expected.back().push_back(replica.weights);
      }
      const ModelAveragingOptions options{
          .optimizer = kMomentum, .period = period, .gossip_seed = kSeed, .timeout = kTimeout};
      const std::vector<Weights> final_weights =
          train(GetParam(), size, kSteps, options,
                [&](int rank, std::int64_t step, const SyncStats& stats, std::span<const float> weights) {
                  const Weights& own = expected[static_cast<std::size_t>(step)][static_cast<std::size_t>(rank)];
                  EXPECT_TRUE(std::ranges::equal(weights, own)) << "rank " << rank << ", step " << step;
                  const bool met = (step + 1) % period == 0 && size > 1;
                  EXPECT_EQ(stats.bytes_out, met ? static_cast<std::int64_t>(weights.size_bytes()) : 0);
                });
      for (const Weights& each : final_weights) EXPECT_EQ(each, mean_of(replicas)) << size << ", every " << period;
    }
  }
}

// SlowMo (Wang et al. 2020, algorithm 1) and DiLoCo (Douillard et al. 2023, algorithm 1), line by line, with numbers
// whose products are exact.
// With all elements sent, a meeting is what it is without a codec, but for rounding.
TEST(ModelAveraging, SendsWhatWorkersHaveComeToThroughItsCodec) {
  for (const bool outer : {false, true}) {
    ModelAveragingOptions options{.optimizer = kMomentum, .period = 2, .timeout = kTimeout};
    if (outer) options.outer.momentum = OuterMomentum{.momentum = 0.5f, .rate = 0.5, .nesterov = true};
    const auto nothing = [](int, std::int64_t, const SyncStats&, std::span<const float>) {};
    const Weights expected = train("inproc", 3, 6, options, nothing)[0];
    options.outer.codec = {.kind = CodecKind::kTopK, .ratio = 1};
    std::map<std::int64_t, std::set<Weights>> after_step;
    std::mutex mutex;
    const std::vector<Weights> compressed = train(
        "inproc", 3, 6, options, [&](int, std::int64_t step, const SyncStats& stats, std::span<const float> weights) {
          EXPECT_EQ(stats.codec > Duration::zero(), step % 2 == 1);
          const std::scoped_lock lock(mutex);
          after_step[step].emplace(weights.begin(), weights.end());
        });
    EXPECT_THAT(compressed[0], testing::Pointwise(testing::FloatNear(1e-4f), expected));
    for (const std::int64_t step : {1, 3, 5}) EXPECT_EQ(after_step[step].size(), 1u) << "the same bits on all";
    EXPECT_EQ(compressed[0], compressed[2]);
  }
}

// Each fragment by itself against plain arithmetic: the anchor moves by the mean of what all have come to when the
// meeting began, and each worker's weights by as much as the anchor was away from its own then.
TEST(ModelAveraging, StreamsFragmentsBesideTheStepsThatFollow) {
  constexpr int kRanks = 3;
  constexpr std::int64_t kSteps = 11, kPeriod = 4, kOverlap = 1;
  const Range fragments[] = {{0, 64}, {64, layout_with(9).size()}};
  std::vector<Replica> replicas(kRanks);
  Weights anchor = replicas[0].weights;
  std::vector<Weights> begun(kRanks, anchor);
  Weights mean(anchor.size());
  std::vector<std::vector<Weights>> expected;  // by step and rank
  for (std::int64_t step = 0; step < kSteps; ++step) {
    for (int rank = 0; rank < kRanks; ++rank) replicas[static_cast<std::size_t>(rank)].step(rank, step);
    const std::int64_t in_period = step % kPeriod + 1;
    for (int fragment = 0; fragment < 2; ++fragment) {
      const Range range = fragments[fragment];
      const std::int64_t begins = fragment == 0 ? 2 : 4, ends = begins % kPeriod + kOverlap;
      if (in_period == ends && step >= begins) {
        for (std::size_t i = range.begin; i < range.end; ++i) {
          anchor[i] = mean[i];
          for (std::size_t rank = 0; rank < kRanks; ++rank) replicas[rank].weights[i] += mean[i] - begun[rank][i];
        }
      }
      if (in_period != begins) continue;
      for (std::size_t i = range.begin; i < range.end; ++i) {
        mean[i] = 0;
        for (std::size_t rank = 0; rank < kRanks; ++rank) {
          begun[rank][i] = replicas[rank].weights[i];
          mean[i] += begun[rank][i] / kRanks;
        }
      }
    }
    expected.emplace_back();
    for (const Replica& replica : replicas) expected.back().push_back(replica.weights);
  }
  for (const char* wire : {"inproc", "shm"}) {
    const std::vector<Weights> final_weights =
        train(wire, kRanks, kSteps,
              {.optimizer = kMomentum,
               .period = kPeriod,
               .outer = {.fragments = 2, .overlap = kOverlap},
               .timeout = kTimeout},
              [&](int rank, std::int64_t step, const SyncStats& stats, std::span<const float> weights) {
                const Weights& own = expected[static_cast<std::size_t>(step)][static_cast<std::size_t>(rank)];
                EXPECT_THAT(weights, testing::Pointwise(testing::FloatNear(1e-4f), own)) << rank << ", step " << step;
                EXPECT_EQ(stats.bytes_out > 0, step > 1 && step % 2 == 0) << "a meeting's bytes count where it ends";
              });
    for (const Weights& each : final_weights) EXPECT_EQ(each, final_weights[0]);
    EXPECT_THAT(final_weights[0], testing::Pointwise(testing::FloatNear(1e-4f), mean_of(replicas)));
  }
}

// The mean over workers is what they would have without the meeting, too: but for an outer step, half as long here.
TEST(ModelAveraging, LeavesWithTheMeetingThatIsUnderWay) {
  const Range met{0, 64};  // the first of two fragments, after two steps of four
  std::vector<Replica> replicas(3);
  const Weights initial = replicas[0].weights;
  for (std::int64_t step = 0; step < 2; ++step) {
    for (int rank = 0; rank < 3; ++rank) replicas[static_cast<std::size_t>(rank)].step(rank, step);
  }
  Weights expected = mean_of(replicas);
  for (std::size_t i = met.begin; i < met.end; ++i) expected[i] = initial[i] + 0.5f * (expected[i] - initial[i]);
  const std::vector<Weights> final_weights =
      train("inproc", 3, 2,
            {.optimizer = kMomentum,
             .period = 4,
             .outer = {.momentum = OuterMomentum{.momentum = 0, .rate = 0.5}, .fragments = 2, .overlap = 1},
             .timeout = kTimeout},
            [](int, std::int64_t, const SyncStats&, std::span<const float>) {});
  for (const Weights& each : final_weights) {
    EXPECT_THAT(each, testing::Pointwise(testing::FloatNear(1e-4f), expected));
  }
}

TEST(ModelAveraging, RefusesMoreFragmentsThanTensors) {
  const auto ring = connect_group("inproc", 1);
  const SteadyClock clock;
  const auto collective = make_schedule_collective(*ring[0]);
  ModelAveragingStrategy strategy(*collective, {.optimizer = kMomentum, .period = 4, .outer = {.fragments = 3}}, clock);
  const Status status = strategy.allocate(layout_with(9)).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("3 fragments: the model has 2 tensors"), std::string::npos) << status.message();
}

// Where all make the same steps, what is left out of one meeting is in the next ones: none of it is lost.
TEST(ModelAveraging, KeepsWhatACodecLeavesOutForTheNextMeeting) {
  const auto meets = [](double ratio, std::int64_t meetings) {
    const auto ring = connect_group("inproc", 1);
    const SteadyClock clock;
    const auto collective = make_schedule_collective(*ring[0]);
    ModelAveragingStrategy strategy(*collective,
                                    {.optimizer = {.kind = OptimizerKind::kSgd},
                                     .period = 1,
                                     .outer = {.codec = {.kind = CodecKind::kTopK, .ratio = ratio}},
                                     .timeout = kTimeout},
                                    clock);
    const ParamArenas arenas = *strategy.allocate(layout_with(9));
    EXPECT_TRUE(strategy.join().ok());
    for (std::int64_t step = 0; step < meetings; ++step) {
      strategy.begin_step({step, kRate});
      for (std::size_t i = 0; i < arenas.gradients.size(); ++i) arenas.gradients[i] = step == 0 ? gradient(3, 0, i) : 0;
      EXPECT_TRUE(strategy.finish_step().ok());
    }
    return Weights(arenas.weights.begin(), arenas.weights.end());
  };
  const Weights whole = meets(1, 1);
  EXPECT_NE(meets(0.25, 1), whole);
  EXPECT_THAT(meets(0.25, 4), testing::Pointwise(testing::FloatEq(), whole));
}

TEST(ModelAveraging, MakesAnOuterUpdateOfWhatWorkersComeToByThemselves) {
  constexpr std::int64_t kSteps = 7, kPeriod = 2;
  for (const bool nesterov : {false, true}) {
    const OuterMomentum outer{.momentum = 0.5f, .rate = 0.5, .nesterov = nesterov};
    std::vector<Replica> replicas(2);
    Weights anchor = replicas[0].weights, velocity(anchor.size());
    std::vector<std::vector<Weights>> expected;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      for (int rank = 0; rank < 2; ++rank) replicas[static_cast<std::size_t>(rank)].step(rank, step);
      if ((step + 1) % kPeriod == 0) {
        const Weights mean = mean_of(replicas);
        for (std::size_t i = 0; i < mean.size(); ++i) {
          if (nesterov) {
            velocity[i] = 0.5f * velocity[i] + (anchor[i] - mean[i]);
            anchor[i] -= 0.5f * (anchor[i] - mean[i] + 0.5f * velocity[i]);
          } else {
            velocity[i] = 0.5f * velocity[i] + (anchor[i] - mean[i]) / static_cast<float>(kRate);
            anchor[i] -= 0.5f * static_cast<float>(kRate) * velocity[i];
          }
        }
        for (Replica& replica : replicas) replica.weights = anchor;
      }
      expected.emplace_back();
      for (const Replica& replica : replicas) expected.back().push_back(replica.weights);
    }
    const std::vector<Weights> final_weights =
        train("inproc", 2, kSteps, {.optimizer = kMomentum, .period = kPeriod, .outer = outer, .timeout = kTimeout},
              [&](int rank, std::int64_t step, const SyncStats&, std::span<const float> weights) {
                const Weights& own = expected[static_cast<std::size_t>(step)][static_cast<std::size_t>(rank)];
                for (std::size_t i = 0; i < own.size(); ++i) EXPECT_NEAR(weights[i], own[i], 1e-4) << step;
              });
    EXPECT_EQ(final_weights[0], final_weights[1]);
  }
}

TEST(ModelAveraging, OfOneWorkerIsPlainTraining) {
  const OptimizerConfig adam{.kind = OptimizerKind::kAdam};
  Replica replica(adam);
  for (std::int64_t step = 0; step < 5; ++step) replica.step(0, step);
  for (const std::optional<std::uint64_t> seed : {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(1)}) {
    const ModelAveragingOptions options{.optimizer = adam, .period = 2, .gossip_seed = seed, .timeout = kTimeout};
    EXPECT_EQ(train("inproc", 1, 5, options, [](auto&&...) {})[0], replica.weights);
  }
}

TEST(ModelAveraging, RefusesReplicasOfAnotherModel) {
  const auto endpoints = connect_group("inproc", 2);
  const SteadyClock clock;
  run_ranks(2, [&](int rank) {
    const auto ring = make_schedule_collective(*endpoints[static_cast<std::size_t>(rank)]);
    ModelAveragingStrategy strategy(*ring, {.timeout = kTimeout}, clock);
    ASSERT_TRUE(strategy.allocate(layout_with(9 + rank)).ok());
    EXPECT_EQ(strategy.join().status().code(), Code::kInvalidArgument);
  });
}

TEST(ModelAveraging, NamesTheStepAndTheRankThatItWaitedForInVain) {
  const auto endpoints = connect_group("inproc", 2);
  const SteadyClock clock;
  run_ranks(2, [&](int rank) {
    const auto ring = make_schedule_collective(*endpoints[static_cast<std::size_t>(rank)]);
    ModelAveragingStrategy strategy(*ring, {.period = 2, .timeout = std::chrono::seconds(2)}, clock);
    ASSERT_TRUE(strategy.allocate(layout_with(9)).ok());
    ASSERT_TRUE(strategy.join().ok());
    if (rank == 1) return;  // its endpoint stays: to rank 0 it is silent, not lost
    strategy.begin_step({7, kRate});
    EXPECT_TRUE(strategy.finish_step().ok()) << "a step of its own waits for nobody";
    strategy.begin_step({8, kRate});
    const Status status = strategy.finish_step().status();
    EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
    EXPECT_NE(status.message().find("step 8"), std::string::npos) << status.message();
    EXPECT_NE(status.message().find("rank 1"), std::string::npos) << status.message();
  });
}

// Trains the steps [begin, end) on every rank, from `states` on if there are any, and saves.
std::vector<TrainingState> train_on(const ModelAveragingOptions& options, int size, std::int64_t begin,
                                    std::int64_t end, const std::vector<TrainingState>* states) {
  const auto endpoints = connect_group("inproc", size);
  const SteadyClock clock;
  std::vector<TrainingState> saved(endpoints.size());
  run_ranks(size, [&](int rank) {
    const auto ring = make_schedule_collective(*endpoints[static_cast<std::size_t>(rank)]);
    ModelAveragingStrategy strategy(*ring, options, clock);
    const Result<ParamArenas> arenas = strategy.allocate(layout_with(9));
    ASSERT_TRUE(arenas.ok());
    for (std::size_t i = 0; i < arenas->weights.size(); ++i) arenas->weights[i] = initial_weight(i);
    if (states != nullptr) {
      ASSERT_TRUE(strategy.restore((*states)[static_cast<std::size_t>(rank)]).ok());
    }
    const auto buckets = strategy.join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    EXPECT_EQ(strategy.first_step(), begin);
    for (std::int64_t step = begin; step < end; ++step) {
      strategy.begin_step({step, kRate});
      for (std::size_t i = 0; i < arenas->gradients.size(); ++i) arenas->gradients[i] = gradient(rank, step, i);
      ASSERT_TRUE(strategy.finish_step().ok());
    }
    ASSERT_TRUE(strategy.save(saved[static_cast<std::size_t>(rank)]).ok());
  });
  return saved;
}

TEST(ModelAveraging, GoesOnFromWhatAllHaveSavedAlsoBetweenMeetings) {
  for (const char* way : {"mean", "gossip", "outer momentum", "codec", "streamed"}) {
    ModelAveragingOptions options{.optimizer = kMomentum, .period = 3, .timeout = kTimeout};
    if (way == std::string("gossip")) options.gossip_seed = 5;
    if (way == std::string("streamed")) {
      options.period = 8;  // of a meeting that has begun after step 4, one of three steps is over at 5
      options.outer = {.momentum = OuterMomentum{.momentum = 0.5f}, .fragments = 2, .overlap = 3};
    }
    if (way == std::string("codec")) options.outer.codec = {.kind = CodecKind::kTopK, .ratio = 0.1};
    if (way == std::string("outer momentum")) options.outer.momentum = OuterMomentum{.momentum = 0.5f};
    const std::vector<TrainingState> broken = train_on(options, 4, 0, 5, nullptr);
    for (const std::int64_t end : {7, 11}) {
      const std::vector<TrainingState> unbroken = train_on(options, 4, 0, end, nullptr);
      const std::vector<TrainingState> resumed = train_on(options, 4, 5, end, &broken);
      for (std::size_t rank = 0; rank < unbroken.size(); ++rank) {
        EXPECT_EQ(resumed[rank].names(), unbroken[rank].names());
        for (const std::string& name : unbroken[rank].names()) {
          const Range all{0, layout_with(9).size()};
          Weights expected(all.size()), actual(all.size());
          ASSERT_TRUE(unbroken[rank].read(name, all, expected).ok());
          ASSERT_TRUE(resumed[rank].read(name, all, actual).ok());
          EXPECT_EQ(actual, expected) << name << " of rank " << rank << " after " << end << " steps, " << way;
        }
      }
    }
  }
}

TEST(ModelAveraging, RefusesTheStateOfAnotherNumberOfWorkersAndOfOtherSteps) {
  const ModelAveragingOptions options{.optimizer = kMomentum, .period = 3, .timeout = kTimeout};
  const std::vector<TrainingState> states = train_on(options, 2, 0, 4, nullptr);
  const auto endpoints = connect_group("inproc", 3);
  const SteadyClock clock;
  run_ranks(3, [&](int rank) {
    const auto ring = make_schedule_collective(*endpoints[static_cast<std::size_t>(rank)]);
    ModelAveragingStrategy strategy(*ring, options, clock);
    ASSERT_TRUE(strategy.allocate(layout_with(9)).ok());
    const Status status = strategy.restore(states[0]);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find("3 workers cannot go on from the state of 2"), std::string::npos);
  });
  const auto pair = connect_group("inproc", 2);
  run_ranks(2, [&](int rank) {
    const auto ring = make_schedule_collective(*pair[static_cast<std::size_t>(rank)]);
    ModelAveragingStrategy strategy(*ring, options, clock);
    ASSERT_TRUE(strategy.allocate(layout_with(9)).ok());
    if (rank == 1) {
      ASSERT_TRUE(strategy.restore(states[1]).ok());
    }
    const Status status = strategy.join().status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find(rank == 0 ? "rank 1 goes on from step 4, rank 0 begins anew"
                                              : "rank 0 begins anew, rank 1 goes on from step 4"),
              std::string::npos)
        << status.message();
  });
}

TEST(GossipPairs, PutEveryRankInOnePairAndOneOfAnOddNumberInNone) {
  for (int size = 1; size <= 9; ++size) {
    for (std::int64_t round = 0; round < 200; ++round) {
      const std::vector<int> partners = gossip_pairs(7, round, size);
      ASSERT_EQ(partners.size(), static_cast<std::size_t>(size));
      int alone = 0;
      for (int rank = 0; rank < size; ++rank) {
        const int partner = partners[static_cast<std::size_t>(rank)];
        ASSERT_TRUE(partner >= 0 && partner < size);
        ASSERT_EQ(partners[static_cast<std::size_t>(partner)], rank) << "round " << round << " of " << size;
        alone += partner == rank ? 1 : 0;
      }
      EXPECT_EQ(alone, size % 2);
    }
  }
}

TEST(GossipPairs, AreTheSameOnAllRanksAndOthersInOtherRoundsAndUnderOtherSeeds) {
  std::set<std::vector<int>> seen;
  for (std::int64_t round = 0; round < 50; ++round) {
    EXPECT_EQ(gossip_pairs(1, round, 16), gossip_pairs(1, round, 16));
    seen.insert(gossip_pairs(1, round, 16));
    seen.insert(gossip_pairs(2, round, 16));
  }
  EXPECT_EQ(seen.size(), 100u) << "of about two million matchings";
}

// 15 matchings of 6 ranks: 3000 rounds draw each 200 times, give or take 14.
TEST(GossipPairs, AreAllDrawnAboutEquallyOften) {
  std::map<std::vector<int>, int> drawn;
  for (std::int64_t round = 0; round < 3000; ++round) ++drawn[gossip_pairs(1, round, 6)];
  EXPECT_EQ(drawn.size(), 15u);
  for (const auto& [partners, times] : drawn) {
    EXPECT_GT(times, 130);
    EXPECT_LT(times, 270);
  }
}

TEST(GossipPairs, LetEverybodyMeetEverybodyAndEverybodyStayAloneNowAndThen) {
  std::set<std::pair<int, int>> met;
  for (std::int64_t round = 0; round < 200; ++round) {
    const std::vector<int> partners = gossip_pairs(3, round, 5);
    for (int rank = 0; rank < 5; ++rank) met.insert({rank, partners[static_cast<std::size_t>(rank)]});
  }
  EXPECT_EQ(met.size(), 25u);
}

// Five values, of which one is not averaged in each round: what they are apart never grows, and its square is halved by
// a round in the mean.
TEST(GossipPairs, BringAllTogetherWhereTheyAverageTheirValues) {
  std::vector<double> values = {0, 0, 0, 0, 100};
  const auto apart = [&] {
    double sum = 0;
    for (const double value : values) sum += (value - 20) * (value - 20);
    return sum;
  };
  const double before = apart();
  for (std::int64_t round = 0; round < 40; ++round) {
    const double last = apart();
    const std::vector<int> partners = gossip_pairs(1, round, 5);
    const std::vector<double> old = values;
    for (std::size_t i = 0; i < 5; ++i) values[i] = (old[i] + old[static_cast<std::size_t>(partners[i])]) / 2;
    EXPECT_LE(apart(), last);
  }
  EXPECT_LT(apart(), 1e-6 * before);
}

}  // namespace
}  // namespace syncopate::allreduce
