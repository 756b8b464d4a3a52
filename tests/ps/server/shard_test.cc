#include "ps/server/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "common/os/aligned_buffer.h"
#include "common/random.h"
#include "tests/ps/server/shard_harness.h"

namespace syncopate::ps {
namespace {

using testing::Each;
using testing::HasSubstr;

std::vector<float> random_gradient(Random& random, std::size_t elements) {
  std::vector<float> gradient(elements);
  for (float& value : gradient) value = static_cast<float>(random.normal());
  return gradient;
}

TEST(Shard, AnswersJoinsOnceEveryWorkerHasJoined) {
  ShardHarness job(3, "async", 8);
  job.join(2);
  job.join(0);
  EXPECT_TRUE(job.worker(0).waiting && job.worker(2).waiting);
  job.join(1);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_FALSE(job.worker(rank).waiting);
    EXPECT_EQ(job.worker(rank).weights, std::vector<float>(8, 0.0f));
  }
}

TEST(Shard, RejectsAllWorkersWhenOneHasAnotherLayoutAndNamesIt) {
  ShardHarness job(3, "sync", 8);
  job.join(0);
  job.join(1);
  job.join(2, 0xBAD);
  EXPECT_TRUE(job.shard.done());
  EXPECT_EQ(job.shard.refusal(),
            "worker 2 has layout 0000000000000bad of 8 floats in 1 chunks, "
            "the chief layout 0000000000c0ffee of 8 floats in 1 chunks");
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(job.worker(rank).greetings[0], Answer::Kind::kReject);
}

TEST(Shard, RejectsAllWorkersWhenTheChiefIsLostBeforeItsWeightsCame) {
  ShardHarness job(2, "async", 8);
  job.join(1);
  job.lose(0);
  EXPECT_EQ(job.worker(1).greetings[0], Answer::Kind::kReject);
  EXPECT_THAT(job.shard.refusal(), HasSubstr("chief was lost"));
  EXPECT_TRUE(job.shard.done());
}

TEST(Shard, AppliesAndAnswersEachAsyncPushAtOnce) {
  ShardHarness job(2, "async", 8);
  job.join_all();
  job.push(0, 1);
  job.push(0, 2);
  EXPECT_THAT(job.worker(0).weights, Each(-3.0f));
  job.push(1, 4);
  EXPECT_THAT(job.worker(1).weights, Each(-7.0f));
}

TEST(Shard, CountsTheUpdatesBetweenPullAndPushAsStaleness) {
  ShardHarness job(2, "async", 8);
  job.join_all();
  job.push(0, 1);
  job.push(0, 1);
  job.push(0, 1);
  job.push(1, 1);
  EXPECT_EQ(job.worker(0).answers.back().staleness, 0);
  EXPECT_EQ(job.worker(1).answers.back().staleness, 3);
  job.push(0, 1);
  EXPECT_EQ(job.worker(0).answers.back().staleness, 1);
  EXPECT_EQ(job.shard.counters().staleness_sum, 4);
  EXPECT_EQ(job.shard.counters().staleness_max, 3);
}

TEST(Shard, DefersPullUntilSlowestWorkerIsWithinBound) {
  ShardHarness job(2, "bounded:1", 8);
  job.join_all();
  job.push(0, 1);
  EXPECT_FALSE(job.worker(0).waiting);
  job.push(0, 2);
  EXPECT_TRUE(job.worker(0).waiting);
  EXPECT_THAT(job.weights(), Each(-3.0f));  // applied all the same
  job.push(1, 4);
  EXPECT_FALSE(job.worker(0).waiting);
  EXPECT_THAT(job.worker(0).weights, Each(-7.0f));  // the weights of the moment it was answered
}

TEST(Shard, AppliesTheMeanOnceAllWorkersHavePushedInSync) {
  ShardHarness job(2, "sync", 8);
  job.join_all();
  job.push(1, 2);
  EXPECT_TRUE(job.worker(1).waiting);
  EXPECT_TRUE(job.shard.has_pending_gradient(1, 0));
  EXPECT_EQ(job.version(), 0);
  job.push(0, 4);
  EXPECT_FALSE(job.shard.has_pending_gradient(1, 0));
  for (int rank = 0; rank < 2; ++rank) EXPECT_THAT(job.worker(rank).weights, Each(-3.0f));
  EXPECT_EQ(job.version(), 1);
}

TEST(Shard, GivesTheSameBitsInSyncWhateverTheOrderOfArrivalForEveryOptimizer) {
  constexpr std::size_t kElements = 10000;  // more than one block, not a multiple of one
  constexpr int kWorkers = 4;
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kMomentum, OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
    const OptimizerConfig config{.kind = kind, .weight_decay = 0.01f};
    std::vector<std::vector<float>> results;
    for (std::uint64_t order = 0; order < 5; ++order) {
      ShardHarness job(kWorkers, "sync", kElements, config);
      job.join_all();
      Random gradients(1), arrival(order);
      for (int clock = 0; clock < 3; ++clock) {
        std::vector<std::vector<float>> of_worker;
        for (int i = 0; i < kWorkers; ++i) of_worker.push_back(random_gradient(gradients, kElements));
        std::vector<int> ranks{0, 1, 2, 3};
        for (std::size_t i = ranks.size(); i > 1; --i) std::swap(ranks[i - 1], ranks[arrival.below(i)]);
        for (const int rank : ranks) job.push(rank, of_worker[static_cast<std::size_t>(rank)], 0.1f);
      }
      results.emplace_back(job.weights().begin(), job.weights().end());
      EXPECT_EQ(job.shard.counters().copies, 0);
    }
    for (const std::vector<float>& result : results) EXPECT_EQ(result, results[0]);
  }
}

TEST(Shard, UpdatesInSyncAsTheOptimizerWouldFromTheSum) {
  constexpr std::size_t kElements = 5000;
  const OptimizerConfig config{.kind = OptimizerKind::kAdam};
  ShardHarness job(3, "sync", kElements, config);
  job.join_all();
  AlignedBuffer weights(kElements), sum(kElements);
  OptimizerState state(config, kElements);
  Random random(7);
  for (std::int64_t number = 1; number <= 3; ++number) {
    std::vector<std::vector<float>> gradients;
    for (int rank = 0; rank < 3; ++rank) gradients.push_back(random_gradient(random, kElements));
    for (std::size_t i = 0; i < kElements; ++i) {
      sum.data()[i] = (gradients[0][i] + gradients[1][i]) + gradients[2][i];
    }
    Optimizer(config).apply(weights.span(), std::as_const(sum).span(), state, 0,
                            {.learning_rate = 0.1f, .gradient_scale = 1.0f / 3, .number = number});
    for (const int rank : {2, 0, 1}) job.push(rank, gradients[static_cast<std::size_t>(rank)], 0.1f);
  }
  EXPECT_TRUE(std::equal(weights.span().begin(), weights.span().end(), job.weights().begin()));
}

TEST(Shard, CountsAdamsBiasCorrectionByTheShardsUpdatesWhenPushesAreAppliedSingly) {
  const OptimizerConfig config{.kind = OptimizerKind::kAdam};
  ShardHarness job(2, "async", 16, config);
  job.join_all();
  AlignedBuffer weights(16), gradient(16);
  OptimizerState state(config, 16);
  for (const int rank : {0, 1, 1}) {
    const float value = static_cast<float>(rank) + 0.5f;
    std::fill(gradient.span().begin(), gradient.span().end(), value);
    Optimizer(config).apply(weights.span(), std::as_const(gradient).span(), state, 0,
                            {.learning_rate = 0.1f, .number = job.version() + 1});
    job.push(rank, value, 0.1f);
  }
  EXPECT_TRUE(std::equal(weights.span().begin(), weights.span().end(), job.weights().begin()));
}

TEST(Shard, ChunksHaveClocksAndVersionsOfTheirOwn) {
  std::deque<AlignedBuffer> memory;
  Shard shard(
      {.workers = 2, .consistency = *Consistency::parse("sync"), .optimizer = {}},
      [&](std::size_t size) { return Result<std::span<float>>(memory.emplace_back(size).span()); },
      [](const PendingSends&) { return Status(); });
  const ArenaClaim claim{.layout_hash = 1, .arena_size = 64, .shard_size = 48, .chunks = 2};
  ASSERT_TRUE(shard.on_join(0, claim).ok());
  ASSERT_TRUE(shard.on_initial(0, 0, {0, 32}, std::vector<float>(32, 1.0f)).ok());
  ASSERT_TRUE(shard.on_join(1, claim)->empty());
  const Shard::Answers welcome = shard.on_initial(0, 1, {32, 48}, std::vector<float>(16, 2.0f));
  ASSERT_EQ(welcome->size(), 6u);  // for each worker a greeting and two chunks
  EXPECT_EQ((*welcome)[3].kind, Answer::Kind::kWelcome);
  EXPECT_THAT((*welcome)[4].weights.weights, Each(1.0f));
  EXPECT_THAT((*welcome)[5].weights.weights, Each(2.0f));

  const std::vector<float> large(32, 1.0f), small(16, 1.0f);
  const auto push = [&](int worker, std::size_t chunk) {
    return shard.on_push({.step = {.worker = worker, .clock = 1, .learning_rate = 1},
                          .chunk = chunk,
                          .gradient = chunk == 0 ? large : small});
  };
  EXPECT_TRUE(push(0, 0)->empty());
  EXPECT_TRUE(push(1, 1)->empty());
  EXPECT_TRUE(shard.has_pending_gradient(0, 0) && shard.has_pending_gradient(1, 1));
  const Shard::Answers answers = push(0, 1);
  ASSERT_EQ(answers->size(), 2u);
  EXPECT_EQ((*answers)[0].chunk, 1u);
  EXPECT_THAT((*answers)[0].weights.weights, Each(1.0f));
  EXPECT_EQ(shard.chunk(0).weights().version(), 0);
  EXPECT_EQ(shard.chunk(1).weights().version(), 1);
}

TEST(Shard, NeverCopiesForOneWorker) {
  for (const char* consistency : {"sync", "bounded:0", "async"}) {
    ShardHarness job(1, consistency, 8);
    job.join_all();
    for (int i = 0; i < 10; ++i) job.push(0, 1);
    EXPECT_EQ(job.shard.counters().copies, 0) << consistency;
    EXPECT_EQ(job.memory(), 8u);
    EXPECT_THAT(job.weights(), Each(-10.0f));
  }
}

// It pushes before it has read the answer to its last push: that says nothing of what it has read.
TEST(Shard, DoesNotWaitForAWorkerThatPushesAheadOfItsAnswers) {
  ShardHarness job(1, "async", 32);
  job.join_all();
  job.push(0, 1);
  const std::vector<float> gradient(32, 1.0f);
  const Shard::Answers answers = job.shard.on_push(
      {.step = {.worker = 0, .clock = 2, .learning_rate = 1}, .chunk = 0, .version = 0, .gradient = gradient});
  ASSERT_TRUE(answers.ok()) << answers.status().message();
  EXPECT_THAT(job.worker(0).reads->weights, Each(-1.0f));
  EXPECT_THAT(job.weights(), Each(-2.0f));
}

TEST(Shard, LeaversGetTheFinalWeightsOnceNobodyTrainsAnyMore) {
  ShardHarness job(2, "async", 8);
  job.join_all();
  job.push(0, 1);
  job.leave(0);
  EXPECT_TRUE(job.worker(0).waiting);
  job.push(1, 2);
  job.push(1, 4);
  job.leave(1);
  EXPECT_TRUE(job.shard.done());
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(job.worker(rank).greetings.back(), Answer::Kind::kFarewell);
    EXPECT_THAT(job.worker(rank).weights, Each(-7.0f));
  }
}

TEST(Shard, NobodyWaitsForAWorkerThatHasLeft) {
  ShardHarness job(2, "bounded:0", 8);
  job.join_all();
  job.push(0, 1);
  EXPECT_TRUE(job.worker(0).waiting);
  job.leave(1);
  EXPECT_FALSE(job.worker(0).waiting);
}

TEST(Shard, GoesOnWithoutALostWorkerAndDropsWhatItHeldOfIt) {
  ShardHarness job(3, "sync", 8);
  job.join_all();
  job.push(2, 100);
  job.push(0, 2);
  job.lose(2);
  EXPECT_FALSE(job.shard.has_pending_gradient(2, 0));
  EXPECT_TRUE(job.worker(0).waiting);
  job.push(1, 4);
  EXPECT_THAT(job.worker(0).weights, Each(-3.0f));  // the mean of those that are left
  EXPECT_EQ(job.shard.counters().workers_lost, 1);
}

TEST(Shard, IsDoneWhenTheLastWorkerIsLost) {
  ShardHarness job(2, "async", 8);
  job.join_all();
  job.leave(0);
  EXPECT_FALSE(job.shard.done());
  job.lose(1);
  EXPECT_TRUE(job.shard.done());
  EXPECT_EQ(job.worker(0).greetings.back(), Answer::Kind::kFarewell);
}

TEST(Shard, TakesTheLossOfAWorkerTwiceAsOnce) {
  ShardHarness job(2, "async", 8);
  job.join_all();
  job.lose(1);
  job.lose(1);
  EXPECT_EQ(job.shard.counters().workers_lost, 1);
}

// Each message is wrong in one way; none may change anything.
TEST(Shard, RefusesWhatCannotBeRightAndChangesNothing) {
  ShardHarness job(2, "async", 8);
  const std::vector<float> gradient(8, 1.0f), longer(9, 1.0f);
  const PushRequest good{.step = {.worker = 0, .clock = 1, .learning_rate = 1}, .version = 0, .gradient = gradient};
  const auto expect_refused = [&](const Shard::Answers& answers) {
    ASSERT_FALSE(answers.ok());
    EXPECT_EQ(answers.status().code(), Code::kInvalidArgument);
  };
  const auto with = [&](auto change) {
    PushRequest request = good;
    change(request);
    return job.shard.on_push(request);
  };
  expect_refused(job.shard.on_push(good));  // before it has joined
  expect_refused(job.shard.on_leave(0));
  const auto with_claim = [&](auto change) {
    ArenaClaim claim = job.claim();
    change(claim);
    return job.shard.on_join(0, claim);
  };
  expect_refused(with_claim([](ArenaClaim& c) { c.arena_size = ~std::uint64_t{0}; }));
  expect_refused(with_claim([](ArenaClaim& c) { c.shard_size = c.arena_size + 1; }));
  expect_refused(with_claim([](ArenaClaim& c) { c.chunks = c.shard_size + 1; }));
  expect_refused(job.shard.on_initial(0, 0, {0, 8}, gradient));  // before it has joined
  ASSERT_TRUE(job.shard.on_join(0, job.claim()).ok());
  expect_refused(job.shard.on_initial(0, 0, {0, longer.size()}, longer));
  expect_refused(job.shard.on_initial(0, 0, {0, 7}, std::span(gradient).first(7)));
  expect_refused(job.shard.on_initial(0, 0, {}, {}));
  expect_refused(job.shard.on_initial(0, 1, {0, 8}, gradient));
  expect_refused(job.shard.on_initial(1, 0, {0, 8}, gradient));
  expect_refused(job.shard.on_push(good));  // before it has started
  ASSERT_TRUE(job.shard.on_initial(0, 0, {0, 8}, std::vector<float>(8, 0.0f)).ok());
  expect_refused(job.shard.on_initial(0, 0, {0, 8}, gradient));
  job.worker(0).joined = job.worker(0).waiting = true;
  job.join(1);
  expect_refused(job.shard.on_join(0, job.claim()));
  expect_refused(with([](PushRequest& r) { r.chunk = 1; }));
  expect_refused(with([](PushRequest& r) { r.step.clock = 0; }));
  expect_refused(with([](PushRequest& r) { r.step.clock = 2; }));
  expect_refused(with([](PushRequest& r) { r.version = 1; }));
  expect_refused(with([](PushRequest& r) { r.version = -1; }));
  expect_refused(with([](PushRequest& r) { r.step.learning_rate = std::numeric_limits<float>::quiet_NaN(); }));
  expect_refused(with([](PushRequest& r) { r.step.learning_rate = -1; }));
  expect_refused(with([&](PushRequest& r) { r.gradient = longer; }));
  expect_refused(with([](PushRequest& r) { r.gradient = {}; }));
  EXPECT_EQ(job.version(), 0);
  EXPECT_THAT(job.weights(), Each(0.0f));
  job.push(0, 1);
  expect_refused(job.shard.on_push(good));  // once more
  EXPECT_THAT(job.weights(), Each(-1.0f));
}

// Each message is wrong in one way; what is right beside them decides alone which weights decay.
TEST(Shard, RefusesRangesWithoutDecayThatCannotBeRight) {
  std::deque<AlignedBuffer> memory;
  Shard shard(
      {.workers = 2,
       .consistency = *Consistency::parse("sync"),
       .optimizer = {.kind = OptimizerKind::kSgd, .weight_decay = 0.5f}},
      [&](std::size_t size) { return Result<std::span<float>>(memory.emplace_back(size).span()); },
      [](const PendingSends&) { return Status(); });
  const ArenaClaim claim{.layout_hash = 1, .arena_size = 24, .shard_size = 8, .chunks = 1};
  const auto say = [&](int worker, std::vector<std::uint64_t> bounds) { return shard.on_undecayed(worker, bounds); };
  const auto expect_refused = [&](const Shard::Answers& answers) {
    ASSERT_FALSE(answers.ok());
    EXPECT_EQ(answers.status().code(), Code::kInvalidArgument) << answers.status().message();
  };
  expect_refused(say(0, {1, 2}));  // before it has joined
  ASSERT_TRUE(shard.on_join(0, claim).ok());
  expect_refused(say(1, {1, 2}));  // of one that describes nothing
  expect_refused(say(0, {}));
  expect_refused(say(0, {1}));
  expect_refused(say(0, {1, 2, 3}));
  expect_refused(say(0, {2, 2}));
  expect_refused(say(0, {3, 2}));
  expect_refused(say(0, {1, 25}));                       // beyond the arena
  expect_refused(say(0, {1, ~std::uint64_t{0}}));        // far beyond
  expect_refused(say(0, {1, 4, 3, 6}));                  // in each other
  expect_refused(say(0, {4, 6, 1, 3, 7, 8}));            // not ascending
  expect_refused(say(0, {1, 3, ~std::uint64_t{0}, 5}));  // a begin that is none
  ASSERT_TRUE(say(0, {2, 4}).ok());
  expect_refused(say(0, {3, 5}));     // begins in what is known
  EXPECT_TRUE(say(0, {2, 4}).ok());   // said again: it is not looked at
  ASSERT_TRUE(say(0, {6, 12}).ok());  // beyond the shard's chunk, within the arena
  ASSERT_TRUE(shard.on_initial(0, 0, {0, 8}, std::vector<float>(8, 1.0f)).ok());
  expect_refused(say(0, {14, 16}));  // behind the chunks
  ASSERT_TRUE(shard.on_join(1, claim).ok());
  const std::vector<float> zeros(8, 0.0f);
  for (const int worker : {0, 1}) {
    ASSERT_TRUE(shard.on_push({.step = {.worker = worker, .clock = 1, .learning_rate = 1}, .gradient = zeros}).ok());
  }
  EXPECT_THAT(shard.chunk(0).weights().current(), testing::ElementsAre(0.5f, 0.5f, 1, 1, 0.5f, 0.5f, 1, 1));
}

TEST(Shard, RefusesAPushAndALeaveOfAWorkerThatIsOwedAnAnswer) {
  ShardHarness job(2, "sync", 8);
  job.join_all();
  job.push(0, 1);
  const std::vector<float> gradient(8, 1.0f);
  EXPECT_FALSE(job.shard.on_push({.step = {.worker = 0, .clock = 2, .learning_rate = 1}, .gradient = gradient}).ok());
  EXPECT_FALSE(job.shard.on_leave(0).ok());
}

// More workers than a machine word has bits.
TEST(Shard, TakesTheMeanOfAHundredWorkersAndOfThoseThatAreLeft) {
  ShardHarness job(100, "sync", 4);
  job.join_all();
  for (int rank = 0; rank < 100; ++rank) job.push(rank, static_cast<float>(rank));
  EXPECT_THAT(job.weights(), Each(-49.5f));
  job.lose(70);
  for (int rank = 0; rank < 100; ++rank) {
    if (rank != 70) job.push(rank, 2);
  }
  EXPECT_THAT(job.weights(), Each(-51.5f));
  EXPECT_EQ(job.version(), 2);
}

TEST(Shard, HoldsAHundredWorkersWithinTheBoundOfTheSlowest) {
  ShardHarness job(100, "bounded:1", 4);
  job.join_all();
  for (int rank = 0; rank < 99; ++rank) job.push(rank, 1);
  for (int rank = 0; rank < 99; ++rank) job.push(rank, 1);
  for (int rank = 0; rank < 99; ++rank) EXPECT_TRUE(job.worker(rank).waiting) << rank;
  job.push(99, 1);
  for (int rank = 0; rank < 99; ++rank) EXPECT_FALSE(job.worker(rank).waiting) << rank;
}

}  // namespace
}  // namespace syncopate::ps
