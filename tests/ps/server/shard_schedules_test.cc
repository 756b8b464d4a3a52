// Every schedule of a small job, and random schedules of larger ones, against a shard without a network.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "common/random.h"
#include "tests/ps/server/shard_harness.h"
#include "tests/support/every_consistency.h"

namespace syncopate::ps {
namespace {

using testing::Each;

struct ScheduledJob {
  int workers;
  int clocks;  // pushes of each worker
  std::string consistency;
  int losses = 0;  // workers that may be lost on the way
};

constexpr float kElasticRate = 0.25f;

// What the weights must be, by the shortest account of each kind: one number, since all elements are pushed alike.
class Model {
 public:
  Model(const Consistency& consistency, int workers) : consistency_(consistency), workers_(workers), live_(workers) {}

  void push(int rank, float value, bool is_stale) {
    if (consistency_.updates_together()) {
      if (is_stale && has_quorum()) {
        sum_ += value;  // counts in the next update
        ++summed_;
        in_sum_.insert(rank);
      } else if (is_stale) {
        ++late;
      } else {
        waiting[rank] = value;
      }
      return update_together();
    }
    if (consistency_.pushes_weights()) {
      weights += kElasticRate * (value - weights);
      ++updates;
      return;
    }
    sum_ += value;
    if (++summed_ == consistency_.pushes_an_update(workers_, live_)) update_from_sum();
  }

  void depart(int rank) {
    waiting.erase(rank);
    --live_;
    update_together();
    if (live_ == 0 && summed_ > 0) update_from_sum();
  }

  float weights = 0;
  std::int64_t updates = 0;
  std::int64_t late = 0;
  std::map<int, float> waiting;  // gradients that are held, by worker

 private:
  void update_together() {
    // Exactly so many, of workers that differ, and all of the version that is now.
    const int needed = consistency_.pushes_an_update(workers_, live_);
    EXPECT_LE(static_cast<int>(waiting.size()), needed);
    const auto is_in_sum = [&](const auto& pushed) { return in_sum_.contains(pushed.first); };
    const auto come =
        static_cast<int>(in_sum_.size() + waiting.size()) - static_cast<int>(std::ranges::count_if(waiting, is_in_sum));
    if (come == 0 || come < needed) return;
    in_sum_.clear();
    for (const auto& [rank, value] : waiting) sum_ += value;
    summed_ += static_cast<int>(waiting.size());
    waiting.clear();
    update_from_sum();
  }

  bool has_quorum() const { return !consistency_.quorum().is_all(); }

  void update_from_sum() {
    weights -= sum_ / static_cast<float>(summed_);
    sum_ = 0;
    summed_ = 0;
    ++updates;
  }

  Consistency consistency_;
  int workers_;
  int live_;
  float sum_ = 0;
  int summed_ = 0;
  std::set<int> in_sum_;  // workers whose pushes came too late for the last update, and count for the next
};

// One run of a job, as a sequence of choices between the actions that are possible. Worker w's push number c is a
// gradient of 2^(w * clocks + c - 1): with sgd and a rate of 1 the weights tell, digit by digit, which pushes they
// hold.
class ShardSimulation {
 public:
  explicit ShardSimulation(const ScheduledJob& job)
      : job_(job),
        consistency_(consistency_of(job.consistency)),
        harness_(job.workers, job.consistency, 2),
        model_(consistency_, job.workers) {}

  struct Action {
    enum class Kind { kJoin, kPush, kLeave, kLose } kind;
    int worker;
  };

  std::vector<Action> possible() {
    std::vector<Action> actions;
    for (int rank = 0; rank < job_.workers; ++rank) {
      const ShardHarness::Worker& worker = harness_.worker(rank);
      if (worker.lost || worker.left) continue;
      if (losses_ < job_.losses && all_joined()) actions.push_back({Action::Kind::kLose, rank});
      if (worker.waiting) continue;
      const auto next = !worker.joined               ? Action::Kind::kJoin
                        : worker.clock < job_.clocks ? Action::Kind::kPush
                                                     : Action::Kind::kLeave;
      actions.push_back({next, rank});
    }
    return actions;
  }

  void take(const Action& action) {
    const ShardHarness::Worker& worker = harness_.worker(action.worker);
    switch (action.kind) {
      case Action::Kind::kJoin:
        harness_.join(action.worker);
        break;
      case Action::Kind::kPush: {
        const float digit = static_cast<float>(std::int64_t{1} << (action.worker * job_.clocks + worker.clock));
        model_.push(action.worker, digit, worker.version < harness_.version());
        harness_.push(action.worker, digit, consistency_.is_elastic() ? kElasticRate : 1.0f);
        break;
      }
      case Action::Kind::kLeave:
        model_.depart(action.worker);
        harness_.leave(action.worker);
        break;
      case Action::Kind::kLose:
        ++losses_;
        if (!is_leaving(worker)) model_.depart(action.worker);
        harness_.lose(action.worker);
        break;
    }
    check();
  }

  void check_end() {
    ASSERT_TRUE(harness_.shard.done()) << "nothing can happen any more, but the shard waits";
    for (int rank = 0; rank < job_.workers; ++rank) {
      const ShardHarness::Worker& worker = harness_.worker(rank);
      if (worker.lost) continue;
      // One answer to each push, one to the leave; and all end with the same weights.
      EXPECT_EQ(worker.answers.size(), static_cast<std::size_t>(job_.clocks) + 2);
      EXPECT_EQ(worker.greetings.back(), Answer::Kind::kFarewell);
      EXPECT_TRUE(std::equal(worker.weights.begin(), worker.weights.end(), harness_.weights().begin()));
    }
  }

  ShardHarness& harness() { return harness_; }

 private:
  bool all_joined() {
    for (int rank = 0; rank < job_.workers; ++rank) {
      if (!harness_.worker(rank).joined) return false;
    }
    return true;
  }

  static bool is_leaving(const ShardHarness::Worker& worker) {
    return worker.waiting && !worker.answers.empty() && worker.answers.back().clock == worker.clock;
  }

  void check() {
    // The current weights, and one buffer for each answer that may be under way; four are taken at a time.
    EXPECT_LE(harness_.memory(), 2 + 16 * 4 * static_cast<std::size_t>(1 + (job_.workers - 1) / 4));
    if (!all_joined()) return;
    EXPECT_THAT(harness_.weights(), Each(testing::FloatEq(model_.weights)));
    EXPECT_EQ(harness_.version(), model_.updates);
    EXPECT_EQ(harness_.shard.counters().late, model_.late);
    std::int64_t slowest = std::numeric_limits<std::int64_t>::max();
    for (int rank = 0; rank < job_.workers; ++rank) {
      const ShardHarness::Worker& worker = harness_.worker(rank);
      if (!worker.lost && !worker.left && !is_leaving(worker)) slowest = std::min(slowest, worker.clock);
    }
    for (int rank = 0; rank < job_.workers; ++rank) {
      const ShardHarness::Worker& worker = harness_.worker(rank);
      const bool owed = worker.waiting && worker.answers.back().clock != worker.clock;
      if (worker.lost || worker.left) continue;
      // Nobody waits without need, and nobody runs ahead.
      const bool may_go_on = !model_.waiting.contains(rank) && worker.clock - slowest <= consistency_.least_bound();
      if (owed) {
        EXPECT_FALSE(may_go_on);
      }
      if (!worker.waiting) {
        EXPECT_TRUE(may_go_on);
      }
    }
  }

  ScheduledJob job_;
  Consistency consistency_;
  ShardHarness harness_;
  Model model_;
  int losses_ = 0;
};

// Runs `job` once for every sequence of choices; returns how many there are.
int for_every_schedule(const ScheduledJob& job, const std::function<void(ShardSimulation&)>& at_end) {
  std::vector<std::size_t> choices, widths;
  int schedules = 0;
  do {
    ShardSimulation run(job);
    widths.clear();
    for (std::vector<ShardSimulation::Action> actions = run.possible(); !actions.empty(); actions = run.possible()) {
      if (choices.size() == widths.size()) choices.push_back(0);
      run.take(actions[choices[widths.size()]]);
      widths.push_back(actions.size());
      if (testing::Test::HasFailure()) return schedules;
    }
    run.check_end();
    at_end(run);
    if (testing::Test::HasFailure()) return schedules;
    ++schedules;
    while (!choices.empty() && ++choices.back() == widths[choices.size() - 1]) choices.pop_back();
  } while (!choices.empty());
  return schedules;
}

float all_digits(const ScheduledJob& job) {
  return static_cast<float>((std::int64_t{1} << (job.workers * job.clocks)) - 1);
}

TEST(ShardSchedules, EveryPushIsAppliedOnceAndAnsweredOnceInAsync) {
  for (const ScheduledJob& job : {ScheduledJob{2, 3, "async"}, ScheduledJob{3, 1, "async"}}) {
    const int schedules = for_every_schedule(job, [&](ShardSimulation& run) {
      EXPECT_THAT(run.harness().weights(), Each(-all_digits(job)));
      EXPECT_EQ(run.harness().version(), job.workers * job.clocks);
    });
    EXPECT_GT(schedules, 100);
  }
}

TEST(ShardSchedules, EveryPushIsAppliedOnceAndNobodyRunsAheadOfTheBound) {
  for (const ScheduledJob& job :
       {ScheduledJob{2, 4, "bounded:0"}, ScheduledJob{2, 4, "bounded:1"}, ScheduledJob{3, 2, "bounded:1"}}) {
    const int schedules = for_every_schedule(
        job, [&](ShardSimulation& run) { EXPECT_THAT(run.harness().weights(), Each(-all_digits(job))); });
    EXPECT_GT(schedules, 10);
  }
}

TEST(ShardSchedules, SyncIsTheMeanWhateverTheSchedule) {
  for (const ScheduledJob& job : {ScheduledJob{2, 4, "sync"}, ScheduledJob{4, 1, "sync"}}) {
    const int schedules = for_every_schedule(job, [&](ShardSimulation& run) {
      EXPECT_THAT(run.harness().weights(), Each(-all_digits(job) / static_cast<float>(job.workers)));
      EXPECT_EQ(run.harness().version(), job.clocks);
      EXPECT_EQ(run.harness().shard.counters().copies, 0);
    });
    EXPECT_GT(schedules, 10);
  }
}

// Each update takes the first N of N + b gradients; a later one is dropped, counted and answered at once.
TEST(ShardSchedules, BackupWorkersMakeEachUpdateOfExactlyTheFirstGradientsOfItsVersion) {
  for (const ScheduledJob& job :
       {ScheduledJob{2, 3, "sync+1"}, ScheduledJob{3, 2, "sync+1"}, ScheduledJob{3, 2, "sync+2"}}) {
    std::int64_t most_late = 0;
    const int schedules = for_every_schedule(job, [&](ShardSimulation& run) {
      const ShardCounters counters = run.harness().shard.counters();
      EXPECT_EQ(counters.pushes, job.workers * job.clocks);
      most_late = std::max(most_late, counters.late);
    });
    EXPECT_GT(schedules, 100);
    EXPECT_GT(most_late, 0);
  }
}

TEST(ShardSchedules, SoftSyncAppliesEveryGradientOnceAndTheLastOnesWhenNobodyTrainsAnyMore) {
  for (const ScheduledJob& job :
       {ScheduledJob{2, 3, "softsync:1"}, ScheduledJob{2, 3, "softsync:2"}, ScheduledJob{3, 1, "softsync:1"}}) {
    const int per_update = consistency_of(job.consistency).pushes_an_update(job.workers, job.workers);
    const int schedules = for_every_schedule(job, [&](ShardSimulation& run) {
      EXPECT_EQ(run.harness().version(), (job.workers * job.clocks + per_update - 1) / per_update);
    });
    EXPECT_GT(schedules, 100);
  }
}

TEST(ShardSchedules, EveryPushMovesTheCenterOnceInEasgd) {
  const ScheduledJob job{2, 3, "easgd:5"};
  const int schedules = for_every_schedule(
      job, [&](ShardSimulation& run) { EXPECT_EQ(run.harness().version(), job.workers * job.clocks); });
  EXPECT_GT(schedules, 100);
}

TEST(ShardSchedules, TheOthersFinishWhereverAWorkerIsLost) {
  for (const std::string& consistency : every_consistency()) {
    EXPECT_GE(for_every_schedule({2, 2, consistency, 1}, [](ShardSimulation&) {}), 100) << consistency;
    EXPECT_GE(for_every_schedule({3, 1, consistency, 2}, [](ShardSimulation&) {}), 100) << consistency;
  }
}

TEST(ShardSchedules, RandomSchedulesOfLargerJobsKeepTheSameRules) {
  std::vector<std::string> kinds = every_consistency();
  kinds.insert(kinds.end(), {"bounded:2", "softsync:3", "local-sgd:4", "easgd:4"});
  for (const std::string& consistency : kinds) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      Random random(seed);
      const int workers = 3 + static_cast<int>(random.below(3));
      const ScheduledJob job{workers, 20 / workers, consistency, static_cast<int>(random.below(2))};
      ShardSimulation run(job);
      for (std::vector<ShardSimulation::Action> actions = run.possible(); !actions.empty(); actions = run.possible()) {
        run.take(actions[random.below(actions.size())]);
      }
      run.check_end();
      ASSERT_FALSE(HasFailure()) << consistency << " seed " << seed;
    }
  }
}

// Sixteen workers, each with its next gradient after 0.8 to 1.2 units of time, as evenly fast ones have.
TEST(ShardSchedules, MeanStalenessOfSoftSyncIsAboutNAndHardlyAnyIsBeyondTwiceN) {
  constexpr int kWorkers = 16, kPushes = 4000;
  for (const int n : {1, 2, 4, 8, 16}) {
    ShardHarness job(kWorkers, fmt::format("softsync:{}", n), 1);
    job.join_all();
    Random random(static_cast<std::uint64_t>(n));
    const auto duration = [&] { return 0.8 + 0.4 * random.uniform(); };
    std::multimap<double, int> ready;
    for (int rank = 0; rank < kWorkers; ++rank) ready.emplace(duration(), rank);
    int beyond = 0;
    for (int i = 0; i < kPushes; ++i) {
      const auto [now, rank] = *ready.begin();
      ready.erase(ready.begin());
      job.push(rank, 1);
      beyond += job.worker(rank).answers.back().staleness > 2 * n ? 1 : 0;
      ready.emplace(now + duration(), rank);
    }
    // Between a pull and its push the others push once each.
    const double expected = static_cast<double>(kWorkers - 1) / (kWorkers / n);
    EXPECT_NEAR(static_cast<double>(job.shard.counters().staleness_sum) / kPushes, expected, 0.1) << n;
    EXPECT_NEAR(expected, n, 1);
    EXPECT_LT(beyond, kPushes / 1000) << n;
    EXPECT_EQ(job.version(), kPushes / (kWorkers / n));
  }
}

}  // namespace
}  // namespace syncopate::ps
