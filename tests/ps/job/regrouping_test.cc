// Jobs that are broken off at any message, by whatever is lost, and go on.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "common/random.h"
#include "ps/server/shard_state.h"
#include "tests/ps/job/codec_names.h"
#include "tests/ps/job/regrouping_job.h"
#include "tests/support/every_consistency.h"

namespace syncopate::ps {
namespace {

using testing::Each;

constexpr std::size_t kChunk = 64;  // floats
constexpr std::size_t kChunks = 5;
constexpr std::int64_t kSteps = 8;

ParamLayout layout_of_chunks() {
  ParamLayout layout;
  layout.add("weights", {kChunks * kChunk});
  return layout;
}

// Each push of a worker has an element of its own in each chunk: with sgd the weights tell how often it was applied.
std::size_t element_of(int worker, std::int64_t step) {
  return static_cast<std::size_t>(worker) * kSteps + static_cast<std::size_t>(step);
}
void mark(int worker, std::int64_t step, std::span<float> gradients) {
  for (std::size_t chunk = 0; chunk < kChunks; ++chunk) gradients[chunk * kChunk + element_of(worker, step)] = 1;
}

RegroupingOptions options_of(const PsGroup& group, const std::string& consistency) {
  return {.group = group, .layout = layout_of_chunks(), .consistency = consistency, .steps = kSteps};
}

void expect_each_push_once(const std::vector<float>& weights, int workers, float each, const std::string& what) {
  ASSERT_EQ(weights.size(), kChunks * kChunk) << what;
  for (std::size_t chunk = 0; chunk < kChunks; ++chunk) {
    for (std::size_t i = 0; i < kChunk; ++i) {
      const float expected = i < static_cast<std::size_t>(workers) * kSteps ? -each : 0;
      ASSERT_EQ(weights[chunk * kChunk + i], expected) << what << ": chunk " << chunk << " element " << i;
    }
  }
}

// Membership epochs that are broken off at seeded messages, until one runs to its end.
void run_broken_off(RegroupingJob& job, Random& random, int most, const std::function<MembershipPlan()>& plan_of) {
  for (int membership = 0; membership < most; ++membership) {
    MembershipPlan plan = plan_of();
    plan.messages = 1 + static_cast<int>(random.below(150));
    if (job.run(plan)) return;
    if (testing::Test::HasFatalFailure()) return;
  }
  ASSERT_TRUE(job.run({}));
}

TEST(Regrouping, EachPushIsAppliedOnceWhereverAJobIsBrokenOff) {
  constexpr int kWorkers = 4;
  const PsGroup group{.workers = kWorkers, .servers = 2};
  for (const std::string& consistency :
       every_consistency([](const ConsistencyTraits& traits) { return !traits.pushes_weights; })) {
    if (consistency_of(consistency).backup_workers() > 0) continue;  // which drop what comes late
    const float each = 1.0f / static_cast<float>(consistency_of(consistency).pushes_an_update(kWorkers, kWorkers));
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      RegroupingJob job(options_of(group, consistency));
      job.gradients = mark;
      Random random(seed);
      run_broken_off(job, random, 6, [] { return MembershipPlan(); });
      EXPECT_GE(job.broken_off(), 1);
      expect_each_push_once(job.weights(), kWorkers, each, fmt::format("{} seed {}", consistency, seed));
      if (HasFatalFailure()) return;
    }
  }
}

// An element is of one step, and tells with which weight the meeting that took it in has counted it. Whoever took part
// when a job was broken off, and whatever the others have done since: nothing counts twice, and nothing is undone.
TEST(Regrouping, WithAQuorumEachStepCountsOnceWhereverAJobIsBrokenOff) {
  constexpr int kWorkers = 4;
  for (const std::string consistency : {"local-sgd:2+1", "local-sgd:2+2", "local-sgd:4+3+1ms"}) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      SCOPED_TRACE(fmt::format("{} seed {}", consistency, seed));
      RegroupingOptions options = options_of({.workers = kWorkers, .servers = 2}, consistency);
      options.local_optimizer = {.kind = OptimizerKind::kSgd};
      RegroupingJob job(options);
      job.gradients = mark;
      Random random(seed);
      run_broken_off(job, random, 6, [] { return MembershipPlan(); });
      EXPECT_GE(job.broken_off(), 1);
      ASSERT_EQ(job.weights().size(), kChunks * kChunk);
      for (std::size_t i = 0; i < job.weights().size(); ++i) {
        const bool is_step = i % kChunk < std::size_t{kWorkers} * kSteps;
        ASSERT_LE(job.weights()[i], is_step ? -0.05f : 1e-5f) << i;
        ASSERT_GE(job.weights()[i], is_step ? -1.00001f : -1e-5f) << i;
      }
    }
  }
}

// Broken off at one moment, then without one of the workers: the others must come to their end all the same.
TEST(Regrouping, JobsOfEveryConsistencyEndWithAWorkerLessAfterTheyWereBrokenOff) {
  for (const std::string& consistency : every_consistency()) {
    SCOPED_TRACE(consistency);
    RegroupingOptions options = options_of({.workers = 3, .servers = 2}, consistency);
    options.local_optimizer = {.kind = OptimizerKind::kSgd};
    RegroupingJob job(options);
    job.gradients = mark;
    job.run({.messages = 60});
    ASSERT_TRUE(job.run({.lost = {1}}));
    ASSERT_EQ(job.weights().size(), kChunks * kChunk);
  }
}

TEST(Regrouping, EachPushIsAppliedOnceInPipelinesAndUnderTheNextForwardPass) {
  for (const int depth : {0, 1, 2}) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      RegroupingOptions options = options_of({.workers = 2, .servers = 2}, depth > 0 ? "async" : "sync");
      options.pipeline_depth = depth;
      options.overlap_forward = depth == 0;
      RegroupingJob job(options);
      job.gradients = mark;
      Random random(seed);
      run_broken_off(job, random, 6, [] { return MembershipPlan(); });
      EXPECT_GE(job.broken_off(), 1);
      expect_each_push_once(job.weights(), 2, depth > 0 ? 1 : 0.5f, fmt::format("depth {} seed {}", depth, seed));
      if (HasFatalFailure()) return;
    }
  }
}

void make_gradient(int rank, std::int64_t step, std::span<float> gradients) {
  Random random(static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(rank));
  for (float& value : gradients) value = static_cast<float>(random.normal());
}

// Gradients do not depend on weights here, so that a step that is gone through again has the same.
void expect_same_as_unbroken(const RegroupingOptions& options, int seeds, int most_messages = 150) {
  RegroupingJob unbroken(options);
  unbroken.gradients = make_gradient;
  ASSERT_TRUE(unbroken.run({}));
  for (int seed = 1; seed <= seeds; ++seed) {
    RegroupingJob job(options);
    job.gradients = make_gradient;
    Random random(static_cast<std::uint64_t>(seed));
    for (int membership = 0; membership < 5; ++membership) {
      if (job.run({.messages = 1 + static_cast<int>(random.below(static_cast<std::uint64_t>(most_messages)))})) break;
    }
    if (job.weights().empty()) {
      ASSERT_TRUE(job.run({}));
    }
    ASSERT_EQ(job.weights(), unbroken.weights()) << options.consistency << " seed " << seed;
  }
}

TEST(Regrouping, SyncEqualsAnUnbrokenRunBitByBit) {
  for (const auto kind : {OptimizerKind::kMomentum, OptimizerKind::kAdam}) {
    RegroupingOptions options = options_of({.workers = 3, .servers = 2}, "sync");
    options.optimizer = {.kind = kind};
    options.learning_rate = 0.1;
    expect_same_as_unbroken(options, 10);
  }
}

TEST(Regrouping, StepsOfOnesOwnGoOnWhereTheyWere) {
  for (const std::string consistency : {"local-sgd:3", "easgd:3"}) {
    RegroupingOptions options = options_of({.workers = consistency == "easgd:3" ? 1 : 3, .servers = 2}, consistency);
    options.local_optimizer = {.kind = OptimizerKind::kAdam};
    options.learning_rate = 0.1;
    expect_same_as_unbroken(options, 10, 60);
  }
}

// One worker, so that the order of pushes is the same.
TEST(Regrouping, WhatErrorFeedbackHasKeptBackIsAppliedOnce) {
  for (const std::string codec : {"topk:0.1", "sign"}) {
    RegroupingOptions options = options_of({.workers = 1, .servers = 2}, "async");
    options.compression.codec = *parse_codec(codec);
    options.learning_rate = 0.1;
    expect_same_as_unbroken(options, 10, 60);
  }
}

TEST(Regrouping, AWorkerThatComesBackTakesUpWhereTheSlowestIs) {
  const PsGroup group{.workers = 3, .servers = 2};
  for (const std::string consistency : {"bounded:0", "sync", "local-sgd:1"}) {
    RegroupingJob job(options_of(group, consistency));
    job.gradients = mark;
    // Joining takes some thirty messages, a step of three workers as many: two or three steps, and as many without one.
    ASSERT_FALSE(job.run({.messages = 100}));
    ASSERT_FALSE(job.run({.lost = {1}, .messages = 90})) << consistency;
    ASSERT_TRUE(job.run({})) << consistency;
    const std::vector<std::int64_t> its = job.first_steps()[1];
    ASSERT_EQ(its.size(), 2u);
    const std::int64_t slowest = std::min(job.first_steps()[0].back(), job.first_steps()[2].back());
    // Those who had begun a meeting have finished it when they have joined; who comes makes that step first.
    EXPECT_GE(its.back() + (consistency == "local-sgd:1" ? 1 : 0), slowest);
    EXPECT_GE(slowest, 3);
  }
}

// Whoever is lost, and comes back without anything: nothing is applied twice, and what the others have pushed is there.
TEST(Regrouping, NothingIsAppliedTwiceWhoeverIsLost) {
  constexpr int kWorkers = 3;
  for (const std::string consistency : {"async", "bounded:1"}) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      RegroupingJob job(options_of({.workers = kWorkers, .servers = 2}, consistency));
      job.gradients = mark;
      Random random(seed);
      run_broken_off(job, random, 6, [&] {
        return MembershipPlan{.lost = {1 + static_cast<int>(random.below(2))}};  // the chief of the beginning stays
      });
      for (std::size_t i = 0; i < job.weights().size(); ++i) {
        const bool is_of_chief = i % kChunk < kSteps;
        ASSERT_GE(job.weights()[i], -1) << consistency << " seed " << seed << " element " << i;
        if (!is_of_chief) continue;
        ASSERT_EQ(job.weights()[i], -1) << consistency << " seed " << seed << " element " << i;
      }
    }
  }
}

// The tail has all that was answered, and the head all that the tail has: whoever is lost, and whenever.
TEST(Regrouping, NoAcknowledgedPushIsLostWithAReplica) {
  constexpr int kWorkers = 2;
  const PsGroup group{.workers = kWorkers, .servers = 1, .shards_per_server = 1, .replicas = 1};
  for (const std::string consistency : {"async", "sync"}) {
    const float each = consistency == "sync" ? 1.0f / kWorkers : 1.0f;
    for (const int victim : {group.rank_of_shard(0), group.rank_of_standby(0)}) {
      for (int messages = 1;; messages += messages < 40 ? 1 : 7) {
        const std::string what = fmt::format("{}: {} lost at its message {}", consistency,
                                             victim == group.rank_of_shard(0) ? "head" : "tail", messages);
        RegroupingJob job(options_of(group, consistency));
        job.gradients = mark;
        if (job.run({.messages = messages, .counts = victim})) {
          EXPECT_GT(messages, 80) << what;
          break;
        }
        // In a job that had begun, the other replica has the state. Then the one that is lost joins again with nothing.
        const bool has_begun = !job.first_steps().empty();
        ASSERT_TRUE(!has_begun || job.carried().contains(group.other_replica_of(victim))) << what;
        const bool ended = job.run({.lost = {victim}, .messages = 30});
        ASSERT_TRUE(ended || job.run({})) << what;
        expect_each_push_once(job.weights(), kWorkers, each, what);
        ASSERT_EQ(job.dropped(), 0) << what;
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Regrouping, ReplicasTakeTurnsThroughAnyLosses) {
  const PsGroup group{.workers = 3, .servers = 2, .shards_per_server = 1, .replicas = 1};
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    RegroupingJob job(options_of(group, "async"));
    job.gradients = mark;
    Random random(seed);
    run_broken_off(job, random, 8, [&] {
      MembershipPlan plan;
      for (int shard = 0; shard < group.shards(); ++shard) {
        // Not the one home that has a state.
        const int home = random.below(2) == 0 ? group.rank_of_shard(shard) : group.rank_of_standby(shard);
        if (random.below(2) == 0 && job.carried().contains(group.other_replica_of(home))) plan.lost.push_back(home);
      }
      return plan;
    });
    expect_each_push_once(job.weights(), 3, 1, fmt::format("seed {}", seed));
    if (HasFatalFailure()) return;
  }
}

class TablesInMembershipEpochs : public testing::Test {
 protected:
  static constexpr int kWorkers = 2;
  static constexpr std::size_t kWidth = 4;

  TablesInMembershipEpochs() {
    layout_.add_table("table", 64, kWidth, {.rows_a_step = 2, .limit = 0});
    layout_.add("weights", {kChunks * kChunk});
    // Each push has a row of its own, and row 63, which all touch.
    for (int worker = 0; worker < kWorkers; ++worker) {
      for (std::int64_t step = 0; step < kSteps; ++step) {
        keys_.push_back({static_cast<RowKey>(element_of(worker, step)), 63});
      }
    }
  }

  void prepare(RegroupingJob& job) {
    job.rows = [this](int rank, std::int64_t step) { return std::vector<RowKeys>{keys_[element_of(rank, step)]}; };
    job.gradients = [this](int, std::int64_t, std::span<float> gradients) {
      const std::span<float> rows = slice(gradients, layout_.tables()[0].room_of(2));
      std::ranges::fill(rows, 1.0f);
    };
    job.after_leave = [this](int rank, SyncStrategy& strategy) {
      for (RowKey key = 0; key < rows_.size() && rank == 0; ++key) {
        SYNCOPATE_RETURN_IF_ERROR(strategy.table_reader()->read_rows(0, RowKeys(&key, 1), std::span(rows_[key])));
      }
      return Status();
    };
  }

  ParamLayout layout_;
  std::vector<std::vector<RowKey>> keys_;
  std::array<std::array<float, kWidth>, 64> rows_{};
};

TEST_F(TablesInMembershipEpochs, EachPushOfRowsIsAppliedOnce) {
  for (const PsGroup& group : {PsGroup{.workers = kWorkers, .servers = 2},
                               PsGroup{.workers = kWorkers, .servers = 2, .shards_per_server = 1, .replicas = 1}}) {
    for (const std::string consistency : {"async", "bounded:1", "sync"}) {
      const float each = consistency == "sync" ? 1.0f / kWorkers : 1.0f;
      for (std::uint64_t seed = 1; seed <= 8; ++seed) {
        RegroupingOptions options = options_of(group, consistency);
        options.layout = layout_;
        RegroupingJob job(options);
        prepare(job);
        Random random(seed);
        run_broken_off(job, random, 6, [] { return MembershipPlan(); });
        for (std::size_t i = 0; i < kWorkers * kSteps; ++i) {
          ASSERT_THAT(rows_[i], Each(-each)) << consistency << " seed " << seed << " row " << i;
        }
        ASSERT_THAT(rows_[63], Each(-each * kWorkers * kSteps)) << consistency << " seed " << seed;
      }
    }
  }
}

// Runs the job to its end. What its shards had when they had made so many updates.
TrainingState run_with_cut(RegroupingJob& job, int shards, std::int64_t cut) {
  TrainingState all;
  std::mutex mutex;
  int saved = 0;
  job.after_step = [&](int rank, std::int64_t step, const std::vector<std::unique_ptr<ShardServer>>& servers) {
    // Each shard heeds it behind one message more at most: before the third update, of which it is asked.
    if (rank != 0 || step != 0) return;
    for (const std::unique_ptr<ShardServer>& server : std::span(servers).first(static_cast<std::size_t>(shards))) {
      server->save_when(cut, TrainingState(), [&](Result<TrainingState> state) {
        ASSERT_TRUE(state.ok()) << state.status().message();
        const std::lock_guard lock(mutex);
        merge_shard(*state, all);
        ++saved;
      });
      server->save_when(0, TrainingState(), [&](const Result<TrainingState>& state) {
        EXPECT_EQ(state.status().code(), Code::kInvalidArgument);
      });
    }
  };
  EXPECT_TRUE(job.run({}));
  EXPECT_EQ(saved, shards);
  EXPECT_EQ(all.step, cut);
  job.after_step = nullptr;
  return all;
}

// Another job, which begins with what shards had.
void run_from(RegroupingJob& job, const PsGroup& group, const TrainingState& all) {
  for (int shard = 0; shard < group.shards(); ++shard) job.carried()[group.rank_of_shard(shard)].merge(all);
  job.begin_from_carried();
  EXPECT_TRUE(job.run({}));
  EXPECT_EQ(job.first_steps()[0], std::vector<std::int64_t>{all.step});
}

// A cut of a job that goes on is where another job begins, with another number of shards and other chunks.
TEST(Regrouping, ACutOfSyncGoesOnWithOtherShardsBitByBit) {
  RegroupingOptions options = options_of({.workers = 2, .servers = 2}, "sync");
  options.optimizer = {.kind = OptimizerKind::kAdam};
  options.learning_rate = 0.1;
  RegroupingJob job(options);
  job.gradients = make_gradient;
  const TrainingState all = run_with_cut(job, 2, 3);
  for (const PsGroup& group : {PsGroup{.workers = 2, .servers = 3}, PsGroup{.workers = 2, .servers = 1}}) {
    for (const std::size_t chunk_bytes : {256, 320, 64}) {
      RegroupingOptions other = options;
      other.group = group;
      other.sharding.chunk_bytes = chunk_bytes;
      RegroupingJob resumed(other);
      resumed.gradients = make_gradient;
      run_from(resumed, group, all);
      EXPECT_EQ(resumed.weights(), job.weights()) << group.servers << " servers, chunks of " << chunk_bytes;
    }
  }
}

// What workers have is not what the shards have: they go on with that. (Of a codec that keeps nothing back of
// gradients, a worker need remember nothing.)
TEST(Regrouping, ACutOfSyncWithCompressedAnswersGoesOnBitByBit) {
  for (const int replicas : {0, 1}) {
    const PsGroup group{.workers = 2, .servers = 2, .replicas = replicas};
    RegroupingOptions options = options_of(group, "sync");
    options.optimizer = {.kind = OptimizerKind::kAdam};
    options.learning_rate = 0.1;
    options.compression = compression_of("int8");
    RegroupingJob job(options), resumed(options);
    job.gradients = resumed.gradients = make_gradient;
    job.decay = resumed.decay = 0.5f;
    const TrainingState all = run_with_cut(job, 2, 3);
    const Range arena{0, options.layout.size()};
    std::vector<float> weights(arena.size()), mirror(arena.size());
    ASSERT_TRUE(all.read(state_part::kWeights, arena, weights).ok());
    ASSERT_TRUE(all.read(shard_part::kMirror, arena, mirror).ok());
    EXPECT_NE(mirror, weights);
    run_from(resumed, group, all);
    EXPECT_EQ(resumed.weights(), job.weights()) << replicas << " standbys";
  }
}

}  // namespace
}  // namespace syncopate::ps
