// AllReduceStrategy goes on from what it has saved: as if it had never been broken, bit by bit.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "allreduce/collective/schedule_collective.h"
#include "allreduce/strategy/allreduce_strategy.h"
#include "allreduce/strategy/bucket_search.h"
#include "common/random.h"
#include "tests/support/cluster.h"

namespace syncopate::allreduce {
namespace {

using testing::HasSubstr;
using testing_support::connect_group;
using testing_support::run_ranks;

ParamLayout layout_with_a_table() {
  ParamLayout layout;
  layout.add_table("rows", 30, 3, {.rows_a_step = 8, .limit = 0.5f});
  layout.add("first", {90, 233});
  layout.add("second", {61});
  layout.add("third", {9, 5});
  return layout;
}

using RankStates = std::vector<TrainingState>;

// Trains `size` ranks from `states` on, which are the ranks' or one for all, until `steps` are done, and saves.
RankStates train(const AllReduceOptions& options, int size, std::int64_t steps, const RankStates& states) {
  const auto group = connect_group("inproc", size);
  const SteadyClock clock;
  const ParamLayout layout = layout_with_a_table();
  RankStates saved(static_cast<std::size_t>(size));
  run_ranks(size, [&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    const auto ring = make_schedule_collective(*group[at]);
    const auto strategy = make_allreduce_strategy(*ring, options, clock);
    const ParamArenas arenas = *strategy->allocate(layout);
    for (std::size_t i = layout.dense().begin; i < layout.size(); ++i) {
      arenas.weights[i] = std::sin(static_cast<float>(i));
    }
    if (!states.empty()) {
      ASSERT_TRUE(strategy->resumable()->restore(states[std::min(at, states.size() - 1)]).ok());
    }
    const auto buckets = strategy->join();
    ASSERT_TRUE(buckets.ok()) << buckets.status().message();
    for (std::int64_t step = strategy->first_step(); step < steps; ++step) {
      Random random(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(step));
      const std::vector<RowKey> keys{static_cast<RowKey>(random.below(15)), static_cast<RowKey>(15 + random.below(15))};
      const std::vector<RowKeys> rows{keys};
      strategy->begin_step({.step = step, .learning_rate = 0.01, .rows = rows, .epoch = step / 3});
      for (const TensorSpec& tensor : layout.tensors()) {
        for (float& value : slice(arenas.gradients, tensor.range)) value = static_cast<float>(random.normal());
      }
      for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) strategy->gradient_ready(bucket);
      const auto stats = strategy->finish_step();
      ASSERT_TRUE(stats.ok()) << stats.status().message();
    }
    const Status status = strategy->resumable()->save(saved[at]);
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_TRUE(ring->barrier(testing_support::soon()).ok());
  });
  return saved;
}

void expect_same(const TrainingState& state, const TrainingState& expected) {
  EXPECT_EQ(state.step, expected.step);
  EXPECT_EQ(state.rows, expected.rows);
  EXPECT_EQ(state.names(), expected.names());
  for (const std::string& name : expected.names()) {
    for (const Range& piece : expected.pieces(name)) {
      std::vector<float> values(piece.size());
      ASSERT_TRUE(state.read(name, piece, values).ok()) << name;
      EXPECT_TRUE(std::ranges::equal(values, expected.values(name, piece))) << name;
    }
  }
}

// "dgc": with all that Deep Gradient Compression keeps and changes. "onebit:N": 1-bit Adam behind N whole updates.
AllReduceOptions options_with(const std::string& codec) {
  if (codec.starts_with("onebit:")) {
    const std::int64_t updates = codec.back() - '0';
    AllReduceOptions options = options_with("sign");
    options.codec.whole_updates = options.optimizer.frozen_after = updates;
    options.optimizer.takes_momentum = true;
    return options;
  }
  const CodecConfig gradient_compression{.kind = CodecKind::kTopK,
                                         .ratio = 0.05,
                                         .warmup_epochs = 2,
                                         .momentum = {.how = CompressMomentum::kMasking, .momentum = 0.9f}};
  return {.optimizer = {.kind = OptimizerKind::kAdam},
          .bucket_bytes = 4096,
          .codec = codec == "dgc" ? gradient_compression : *parse_codec(codec),
          .sparse_exchange = SparseExchange::kRows,
          .timeout = std::chrono::seconds(60)};
}

class Resume : public testing::TestWithParam<std::tuple<const char*, bool>> {};

INSTANTIATE_TEST_SUITE_P(With, Resume,
                         testing::Combine(testing::Values("none", "fp16", "int8", "topk:0.05", "randomk:0.05", "sign",
                                                          "powersgd:2", "dgc", "onebit:2", "onebit:5", "onebit:7"),
                                          testing::Bool()),
                         [](const auto& tested) {
                           const std::string codec = std::get<0>(tested.param);
                           const std::string behind = codec.starts_with("onebit") ? codec.substr(7) : "";
                           return codec.substr(0, codec.find(':')) + behind +
                                  (std::get<1>(tested.param) ? "_elastic" : "");
                         });

TEST_P(Resume, EqualsARunThatWasNotBroken) {
  AllReduceOptions options = options_with(std::get<0>(GetParam()));
  options.elastic = std::get<1>(GetParam());
  const RankStates unbroken = train(options, 3, 9, {});
  const RankStates resumed = train(options, 3, 9, train(options, 3, 4, {}));
  for (std::size_t rank = 0; rank < unbroken.size(); ++rank) expect_same(resumed[rank], unbroken[rank]);
}

// As it comes from a checkpoint: one state for all, with what each worker has of its own.
TEST_P(Resume, EqualsItFromTheStateOfAllTogether) {
  const AllReduceOptions options = options_with(std::get<0>(GetParam()));
  const RankStates unbroken = train(options, 3, 9, {});
  RankStates together(1);
  for (const TrainingState& state : train(options, 3, 4, {})) together[0].merge(state);
  const RankStates resumed = train(options, 3, 9, together);
  for (std::size_t rank = 0; rank < unbroken.size(); ++rank) expect_same(resumed[rank], unbroken[rank]);
}

TEST(ResumeWithOthers, KeepsBackWhatWorkersThatAreThereHaveKeptBack) {
  const AllReduceOptions options = options_with("topk:0.05");
  RankStates together(1);
  for (const TrainingState& state : train(options, 3, 4, {})) together[0].merge(state);
  for (const int size : {2, 5}) {
    const RankStates resumed = train(options, size, 4, together);  // no step more
    for (int worker = 0; worker < size; ++worker) {
      const Range dense = layout_with_a_table().dense();
      std::vector<float> expected(dense.size()), values(dense.size());
      const std::string name = state_part::residual_of(worker);
      EXPECT_EQ(together[0].read(name, dense, expected).ok(), worker < 3);
      ASSERT_TRUE(resumed[static_cast<std::size_t>(worker)].read(name, dense, values).ok());
      EXPECT_EQ(values, expected) << name << ": new workers keep back nothing";
    }
  }
}

TEST(ResumeOfASearch, DoesNotSearchForWhatWasFound) {
  AllReduceOptions options = options_with("none");
  options.bucket_bytes = 0;
  options.sparse_exchange = SparseExchange::kAuto;
  const RankStates states = train(options, 2, 2 * BucketSearch::kMostSteps, {});
  std::mutex mutex;  // both ranks tell
  std::string size, exchange;
  const auto keep_in = [&mutex](std::string& told) {
    return [&mutex, &told](const std::string& finding) {
      const std::lock_guard lock(mutex);
      told = finding;
    };
  };
  options.on_search_end = keep_in(size);
  options.on_exchange_found = keep_in(exchange);
  const RankStates resumed = train(options, 2, 2 * BucketSearch::kMostSteps, states);
  EXPECT_EQ(resumed[0].counts, states[0].counts);
  EXPECT_THAT(size, HasSubstr("as found before"));
  EXPECT_THAT(exchange, HasSubstr("as found before"));
}

TEST(ResumeRefuses, AStateThatLacksSomething) {
  const auto group = connect_group("inproc", 1);
  const SteadyClock clock;
  const auto ring = make_schedule_collective(*group[0]);
  const auto strategy = make_allreduce_strategy(*ring, options_with("none"), clock);
  ASSERT_TRUE(strategy->allocate(layout_with_a_table()).ok());
  TrainingState state;
  EXPECT_EQ(strategy->resumable()->restore(state).code(), Code::kDataLoss);
  const ParamLayout layout = layout_with_a_table();
  state.put(state_part::kWeights, 0, std::vector<float>(layout.size()));
  const Status status = strategy->resumable()->restore(state);
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("what the optimizer remembers"));
}

TEST(ResumeRefuses, ToSaveAStepThatHasFailedUnlessItIsElastic) {
  for (const bool elastic : {false, true}) {
    const auto group = connect_group("inproc", 2);
    const SteadyClock clock;
    run_ranks(2, [&](int rank) {
      AllReduceOptions options = options_with("none");
      options.elastic = elastic;
      const auto ring = make_schedule_collective(*group[static_cast<std::size_t>(rank)]);
      const auto strategy = make_allreduce_strategy(*ring, options, clock);
      ASSERT_TRUE(strategy->allocate(layout_with_a_table()).ok());
      TrainingState state;
      EXPECT_EQ(strategy->resumable()->save(state).code(), Code::kInvalidArgument) << "before join";
      ASSERT_TRUE(strategy->join().ok());
      const std::vector<RowKeys> rows(1);
      strategy->begin_step({.step = 0, .learning_rate = 1, .rows = rows});
      ring->interrupt();
      EXPECT_EQ(strategy->finish_step().status().code(), Code::kCancelled);
      EXPECT_EQ(strategy->resumable()->save(state).ok(), elastic);
      EXPECT_EQ(state.step, 0);
    });
  }
}

}  // namespace
}  // namespace syncopate::allreduce
