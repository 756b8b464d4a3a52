// Every schedule of a small job, and random schedules of larger ones, against a shard without a network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "common/random.h"
#include "tests/ps/shard_harness.h"

namespace syncopate::ps {
namespace {

using testing::Each;

struct Job {
  int workers;
  int clocks;  // pushes of each worker
  std::string consistency;
  int losses = 0;  // workers that may be lost on the way
};

// One run of a job, as a sequence of choices between the actions that are possible. Worker w's push number c is a
// gradient of 2^(w * clocks + c - 1): with sgd and a rate of 1 the weights tell, digit by digit, which pushes they
// hold.
class Simulation {
 public:
  explicit Simulation(const Job& job)
      : job_(job), consistency_(*Consistency::parse(job.consistency)), harness_(job.workers, job.consistency, 2) {}

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
    switch (action.kind) {
      case Action::Kind::kJoin:
        harness_.join(action.worker);
        break;
      case Action::Kind::kPush: {
        const auto clock = harness_.worker(action.worker).clock;
        const float digit = static_cast<float>(std::int64_t{1} << (action.worker * job_.clocks + clock));
        pushed_ += digit;
        harness_.push(action.worker, digit);
        break;
      }
      case Action::Kind::kLeave:
        harness_.leave(action.worker);
        break;
      case Action::Kind::kLose:
        ++losses_;
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

  void check() {
    // The current weights, and one buffer for each answer that may be under way; four are taken at a time.
    EXPECT_LE(harness_.memory(), 2 + 16 * 4 * static_cast<std::size_t>(1 + (job_.workers - 1) / 4));
    if (!all_joined()) return;
    if (!consistency_.updates_together()) {
      EXPECT_THAT(harness_.weights(), Each(-pushed_));
    }
    std::int64_t slowest = std::numeric_limits<std::int64_t>::max();
    for (int rank = 0; rank < job_.workers; ++rank) {
      const ShardHarness::Worker& worker = harness_.worker(rank);
      const bool leaving = worker.waiting && !worker.answers.empty() && worker.answers.back().clock == worker.clock;
      if (!worker.lost && !worker.left && !leaving) slowest = std::min(slowest, worker.clock);
    }
    for (int rank = 0; rank < job_.workers; ++rank) {
      const ShardHarness::Worker& worker = harness_.worker(rank);
      const bool owed = worker.waiting && worker.answers.back().clock != worker.clock;
      if (worker.lost || worker.left) continue;
      // Nobody waits without need, and nobody runs ahead.
      if (owed) {
        EXPECT_FALSE(consistency_.may_answer(worker.clock, slowest));
      }
      if (!worker.waiting) {
        EXPECT_TRUE(consistency_.may_answer(worker.clock, slowest));
      }
    }
  }

  Job job_;
  Consistency consistency_;
  ShardHarness harness_;
  float pushed_ = 0;
  int losses_ = 0;
};

// Runs `job` once for every sequence of choices; returns how many there are.
int for_every_schedule(const Job& job, const std::function<void(Simulation&)>& at_end) {
  std::vector<std::size_t> choices, widths;
  int schedules = 0;
  do {
    Simulation run(job);
    widths.clear();
    for (std::vector<Simulation::Action> actions = run.possible(); !actions.empty(); actions = run.possible()) {
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

float all_digits(const Job& job) { return static_cast<float>((std::int64_t{1} << (job.workers * job.clocks)) - 1); }

TEST(ShardSchedules, EveryPushIsAppliedOnceAndAnsweredOnceInAsync) {
  for (const Job& job : {Job{2, 3, "async"}, Job{3, 1, "async"}}) {
    const int schedules = for_every_schedule(job, [&](Simulation& run) {
      EXPECT_THAT(run.harness().weights(), Each(-all_digits(job)));
      EXPECT_EQ(run.harness().version(), job.workers * job.clocks);
    });
    EXPECT_GT(schedules, 100);
  }
}

TEST(ShardSchedules, EveryPushIsAppliedOnceAndNobodyRunsAheadOfTheBound) {
  for (const Job& job : {Job{2, 4, "bounded:0"}, Job{2, 4, "bounded:1"}, Job{3, 2, "bounded:1"}}) {
    const int schedules =
        for_every_schedule(job, [&](Simulation& run) { EXPECT_THAT(run.harness().weights(), Each(-all_digits(job))); });
    EXPECT_GT(schedules, 10);
  }
}

TEST(ShardSchedules, SyncIsTheMeanWhateverTheSchedule) {
  for (const Job& job : {Job{2, 4, "sync"}, Job{4, 1, "sync"}}) {
    const int schedules = for_every_schedule(job, [&](Simulation& run) {
      EXPECT_THAT(run.harness().weights(), Each(-all_digits(job) / static_cast<float>(job.workers)));
      EXPECT_EQ(run.harness().version(), job.clocks);
      EXPECT_EQ(run.harness().shard.counters().copies, 0);
    });
    EXPECT_GT(schedules, 10);
  }
}

TEST(ShardSchedules, TheOthersFinishWhereverAWorkerIsLost) {
  for (const char* consistency : {"sync", "bounded:0", "bounded:1", "async"}) {
    EXPECT_GE(for_every_schedule({2, 2, consistency, 1}, [](Simulation&) {}), 100) << consistency;
    EXPECT_GE(for_every_schedule({3, 1, consistency, 2}, [](Simulation&) {}), 100) << consistency;
  }
}

TEST(ShardSchedules, RandomSchedulesOfLargerJobsKeepTheSameRules) {
  for (const char* consistency : {"sync", "bounded:0", "bounded:2", "async"}) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      Random random(seed);
      const int workers = 2 + static_cast<int>(random.below(3));
      const Job job{workers, 20 / workers, consistency, static_cast<int>(random.below(2))};
      Simulation run(job);
      for (std::vector<Simulation::Action> actions = run.possible(); !actions.empty(); actions = run.possible()) {
        run.take(actions[random.below(actions.size())]);
      }
      run.check_end();
      ASSERT_FALSE(HasFailure()) << consistency << " seed " << seed;
    }
  }
}

}  // namespace
}  // namespace syncopate::ps
