// Every schedule of a small job with a table, and random schedules of larger ones with messages between that cannot be
// right, against a shard without a network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include "common/random.h"
#include "tests/ps/server/table_harness.h"
#include "tests/support/every_consistency.h"

namespace syncopate::ps {
namespace {

struct TableJob {
  int workers;
  int clocks;  // pushes of each worker
  std::string consistency;
  int losses = 0;  // workers that may be lost on the way
  int reads = 0;   // of the chief, on the way
};

// What a worker touches in a step: a row that all touch, one of its own, one of those in odd steps; and nothing at all
// in each third step.
std::vector<RowKey> keys_of(int worker, std::int64_t clock) {
  if (clock % 3 == 2) return {};
  std::vector<RowKey> keys{0, static_cast<RowKey>(1 + worker)};
  if (clock % 2 == 1) keys.push_back(100);
  return keys;
}

// One run of a job, as a sequence of choices between the actions that are possible. Worker w's push number c is a
// gradient of 2^(w * clocks + c - 1) in all its rows: with sgd and a rate of 1 a row tells, digit by digit, which
// pushes it holds.
class TableSimulation {
 public:
  explicit TableSimulation(const TableJob& job)
      : job_(job), consistency_(consistency_of(job.consistency)), harness_(job.workers, job.consistency) {
    harness_.join_all();
  }

  struct Action {
    enum class Kind { kPull, kPush, kLeave, kGoodbye, kLose, kRead } kind;
    int worker;
  };

  std::vector<Action> possible() {
    std::vector<Action> actions;
    for (int rank = 0; rank < job_.workers; ++rank) {
      const TableHarness::Worker& worker = harness_.worker(rank);
      if (worker.lost || said_goodbye_[rank]) continue;
      if (losses_ < job_.losses) actions.push_back({Action::Kind::kLose, rank});
      if (worker.waiting || (rank == kChief && is_reading_)) continue;
      const auto next = worker.left                  ? Action::Kind::kGoodbye
                        : worker.has_rows            ? Action::Kind::kPush
                        : worker.clock < job_.clocks ? Action::Kind::kPull
                                                     : Action::Kind::kLeave;
      actions.push_back({next, rank});
      if (rank == kChief && reads_ < job_.reads && !worker.has_rows) actions.push_back({Action::Kind::kRead, rank});
    }
    return actions;
  }

  void take(const Action& action) {
    const int rank = action.worker;
    TableHarness::Worker& worker = harness_.worker(rank);
    switch (action.kind) {
      case Action::Kind::kPull:
        harness_.pull(rank, keys_of(rank, worker.clock));
        break;
      case Action::Kind::kPush: {
        const float digit = static_cast<float>(std::int64_t{1} << (rank * job_.clocks + worker.clock));
        held_[rank] = {worker.keys, digit};
        ++pushes_;
        update();
        harness_.push(rank, std::vector<float>(worker.keys.size(), digit));
        break;
      }
      case Action::Kind::kLeave:
        leaving_[rank] = true;
        update();
        harness_.leave(rank);
        break;
      case Action::Kind::kGoodbye:
        said_goodbye_[rank] = true;
        ASSERT_TRUE(harness_.shard.on_goodbye(rank).ok());
        break;
      case Action::Kind::kLose:
        ++losses_;
        held_.erase(rank);
        leaving_[rank] = true;
        harness_.lose(rank);
        if (rank == kChief) is_reading_ = false;
        update();
        break;
      case Action::Kind::kRead:
        ++reads_;
        is_reading_ = true;
        harness_.ask(kChief, {0, 100});
        break;
    }
    check();
  }

  // Messages of `random`'s choice that cannot be right now: each is what would be right but for one thing.
  void disturb(Random& random) {
    const auto rank = static_cast<int>(random.below(static_cast<std::uint64_t>(job_.workers)));
    const TableHarness::Worker& worker = harness_.worker(rank);
    PullRequest pull{.worker = rank, .clock = worker.clock, .slot = random.below(kKeyListSlots), .keys = worker.keys};
    RowsPush push{.step = {.worker = rank, .clock = worker.clock + 1, .learning_rate = 1},
                  .gradients = worker.gradients};
    std::vector<RowKey> keys(1 + random.below(12));
    for (RowKey& key : keys) key = static_cast<RowKey>(random.below(2000));
    keys.push_back(keys[0]);
    std::vector<float> floats(3 + random.below(5), 1.0f);
    switch (random.below(8)) {
      case 0:
        pull.clock += 1 + static_cast<std::int64_t>(random.below(5));
        break;
      case 1:
        pull.slot = kKeyListSlots + (random.next() >> random.below(64));
        break;
      case 2:
        pull.table = 1 + (random.next() >> random.below(64));
        break;
      default:
        pull.keys = keys;
    }
    switch (random.below(4)) {
      case 0:
        push.step.clock -= 1 + static_cast<std::int64_t>(random.below(5));
        break;
      case 1:
        push.step.learning_rate = -1.0f;
        break;
      case 2:
        push.table = 1 + (random.next() >> random.below(64));
        break;
      default:
        push.gradients = floats;  // no step has so many rows
    }
    if (worker.keys.size() == floats.size()) push.gradients = {};
    if (push.gradients.empty() && worker.keys.empty()) push.step.clock = -1;
    EXPECT_FALSE(harness_.shard.on_pull(pull).ok());
    EXPECT_FALSE(harness_.shard.on_rows_push(push).ok());
    EXPECT_FALSE(harness_.shard.on_read_rows({.worker = rank, .keys = keys}).ok());
    EXPECT_FALSE(harness_.shard.on_list_rows(rank, 0, 1000 + keys.size()).ok());
    if (!worker.left) {
      EXPECT_FALSE(harness_.shard.on_goodbye(rank).ok());
    }
    check();
  }

  void check_end() {
    ASSERT_TRUE(harness_.shard.done()) << "nothing can happen any more, but the shard waits";
    EXPECT_EQ(harness_.shard.counters().pushes, pushes_);
    for (int rank = 0; rank < job_.workers; ++rank) {
      const TableHarness::Worker& worker = harness_.worker(rank);
      if (worker.lost) continue;
      EXPECT_EQ(worker.answers, job_.clocks);
      EXPECT_EQ(worker.greetings.back(), Answer::Kind::kFarewell);
    }
  }

  TableHarness& harness() { return harness_; }
  float row(RowKey key) { return rows_[key]; }

 private:
  struct Held {
    std::vector<RowKey> keys;
    float value = 0;
  };

  // The shortest account of it: what the rows are, and how many updates they have had.
  void update() {
    if (consistency_.updates_together()) {
      for (int rank = 0; rank < job_.workers; ++rank) {
        if (!leaving_[rank] && !held_.contains(rank)) return;
      }
    }
    if (held_.empty()) return;
    std::map<RowKey, float> sums;
    for (const auto& [rank, push] : held_) {
      for (const RowKey key : push.keys) sums[key] += push.value;
    }
    for (const auto& [key, sum] : sums) rows_[key] -= sum / static_cast<float>(held_.size());
    held_.clear();
    ++updates_;
  }

  void check() {
    if (const auto& read = harness_.worker(kChief).read; is_reading_ && read) {
      EXPECT_FALSE(held_.contains(kChief));
      EXPECT_THAT(*read, testing::ElementsAre(testing::FloatEq(rows_[0]), testing::FloatEq(rows_[100])));
      is_reading_ = false;
    }
    EXPECT_TRUE(!is_reading_ || held_.contains(kChief));
    EXPECT_EQ(harness_.version(), updates_);
    std::vector<RowKey> keys{0, 100};
    for (int rank = 0; rank < job_.workers; ++rank) keys.insert(keys.begin() + 1 + rank, static_cast<RowKey>(1 + rank));
    const std::vector<float> values = harness_.values(keys);
    for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_FLOAT_EQ(values[i], rows_[keys[i]]) << keys[i];
    std::int64_t slowest = std::numeric_limits<std::int64_t>::max();
    for (int rank = 0; rank < job_.workers; ++rank) {
      if (!leaving_[rank]) slowest = std::min(slowest, harness_.worker(rank).clock);
    }
    for (int rank = 0; rank < job_.workers; ++rank) {
      const TableHarness::Worker& worker = harness_.worker(rank);
      if (worker.lost || leaving_[rank]) continue;
      // Nobody waits without need, and nobody runs ahead.
      const bool may_go_on = !held_.contains(rank) && worker.clock - slowest <= consistency_.least_bound();
      if (worker.waiting) {
        EXPECT_FALSE(may_go_on);
      }
    }
  }

  TableJob job_;
  Consistency consistency_;
  TableHarness harness_;
  std::map<RowKey, float> rows_;
  std::map<int, Held> held_;     // pushes that are in no update yet
  std::map<int, bool> leaving_;  // or lost
  std::int64_t updates_ = 0;
  std::int64_t pushes_ = 0;
  int losses_ = 0;
  int reads_ = 0;
  bool is_reading_ = false;
  std::map<int, bool> said_goodbye_;
};

// Runs `job` once for every sequence of choices; returns how many there are.
int for_every_schedule(const TableJob& job, const std::function<void(TableSimulation&)>& at_end) {
  std::vector<std::size_t> choices, widths;
  int schedules = 0;
  do {
    TableSimulation run(job);
    widths.clear();
    for (std::vector<TableSimulation::Action> actions = run.possible(); !actions.empty(); actions = run.possible()) {
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

// All pushes that touch the row of all: those of clocks 1, 2, 4, 5, ...
float digits_of_shared_row(const TableJob& job) {
  float sum = 0;
  for (int worker = 0; worker < job.workers; ++worker) {
    for (int clock = 0; clock < job.clocks; ++clock) {
      if (clock % 3 != 2) sum += static_cast<float>(std::int64_t{1} << (worker * job.clocks + clock));
    }
  }
  return sum;
}

TEST(TableSchedules, EveryPushIsAppliedOnceAndEveryPullAnsweredOnce) {
  for (const TableJob& job : {TableJob{2, 2, "async"}, TableJob{2, 2, "bounded:0"}, TableJob{2, 3, "bounded:1"},
                              TableJob{3, 1, "bounded:0"}}) {
    const int schedules =
        for_every_schedule(job, [&](TableSimulation& run) { EXPECT_FLOAT_EQ(run.row(0), -digits_of_shared_row(job)); });
    EXPECT_GT(schedules, 100);
  }
}

TEST(TableSchedules, SyncIsTheMeanWhateverTheSchedule) {
  for (const TableJob& job : {TableJob{2, 3, "sync"}, TableJob{3, 1, "sync"}}) {
    const int schedules = for_every_schedule(job, [&](TableSimulation& run) {
      EXPECT_FLOAT_EQ(run.row(0), -digits_of_shared_row(job) / static_cast<float>(job.workers));
      EXPECT_EQ(run.harness().version(), job.clocks);
      EXPECT_EQ(run.harness().shard.counters().staleness_max, 0);
    });
    EXPECT_GT(schedules, 100);
  }
}

TEST(TableSchedules, TheChiefReadsWhatItsOwnPushesHaveMadeOfTheRows) {
  for (const std::string& consistency : every_consistency_of_tables()) {
    EXPECT_GT(for_every_schedule({2, 2, consistency, 0, 1}, [](TableSimulation&) {}), 100) << consistency;
  }
}

TEST(TableSchedules, TheOthersFinishWhereverAWorkerIsLost) {
  for (const std::string& consistency : every_consistency_of_tables()) {
    EXPECT_GE(for_every_schedule({2, 2, consistency, 1, 0}, [](TableSimulation&) {}), 100) << consistency;
    EXPECT_GE(for_every_schedule({2, 1, consistency, 2, 1}, [](TableSimulation&) {}), 100) << consistency;
  }
}

TEST(TableSchedules, RandomSchedulesOfLargerJobsKeepTheSameRulesAmongMessagesThatCannotBeRight) {
  for (const std::string& consistency : every_consistency_of_tables()) {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      Random random(seed);
      const int workers = 3 + static_cast<int>(random.below(3));
      TableSimulation run({workers, 20 / workers, consistency, static_cast<int>(random.below(2)), 2});
      for (std::vector<TableSimulation::Action> actions = run.possible(); !actions.empty(); actions = run.possible()) {
        for (int i = 0; i < 3; ++i) run.disturb(random);
        run.take(actions[random.below(actions.size())]);
      }
      run.check_end();
      ASSERT_FALSE(HasFailure()) << consistency << " seed " << seed;
    }
  }
}

}  // namespace
}  // namespace syncopate::ps
