// The properties of bounded staleness. Each test is a point.
#include "docs/course/exercises/bounded/bounded.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/random.h"
#include "ps/policy/consistency_state.h"

namespace syncopate::course {
namespace {

void push(StalenessRule& rule, int worker, int times) {
  for (int i = 0; i < times; ++i) rule.on_push(worker);
}

TEST(Bounded, AnswersAWorkerThatIsNotAhead) {
  const auto rule = make_bounded_staleness(3, 2);
  push(*rule, 0, 1);
  EXPECT_TRUE(rule->may_answer(0)) << "one push ahead, of two that are allowed";
  push(*rule, 1, 1);
  push(*rule, 2, 1);
  for (int worker = 0; worker < 3; ++worker) EXPECT_TRUE(rule->may_answer(worker)) << "worker " << worker;
}

TEST(Bounded, HoldsBackAWorkerThatIsTooFarAhead) {
  const auto rule = make_bounded_staleness(2, 2);
  push(*rule, 0, 2);
  EXPECT_TRUE(rule->may_answer(0)) << "at the bound, not beyond it";
  push(*rule, 0, 1);
  EXPECT_FALSE(rule->may_answer(0)) << "three pushes ahead, of two that are allowed";
}

TEST(Bounded, AnswersItOnceTheSlowestHasCaughtUp) {
  const auto rule = make_bounded_staleness(3, 1);
  push(*rule, 0, 2);
  ASSERT_FALSE(rule->may_answer(0));
  push(*rule, 1, 1);
  EXPECT_FALSE(rule->may_answer(0)) << "worker 2 has not pushed";
  push(*rule, 2, 1);
  EXPECT_TRUE(rule->may_answer(0));
}

// With a bound of 0 all workers move in step, as synchronous ones do.
TEST(Bounded, MovesInStepWithABoundOfZero) {
  const auto rule = make_bounded_staleness(2, 0);
  push(*rule, 1, 1);
  EXPECT_FALSE(rule->may_answer(1));
  push(*rule, 0, 1);
  EXPECT_TRUE(rule->may_answer(0));
  EXPECT_TRUE(rule->may_answer(1));
}

TEST(Bounded, WaitsForNobodyWhoHasLeft) {
  const auto rule = make_bounded_staleness(3, 1);
  push(*rule, 0, 3);
  push(*rule, 1, 2);
  ASSERT_FALSE(rule->may_answer(0));
  rule->on_leave(2);
  EXPECT_TRUE(rule->may_answer(0)) << "worker 1 is the slowest that trains, one push behind";
  rule->on_leave(1);
  EXPECT_TRUE(rule->may_answer(0)) << "alone";
}

// A job that waits for itself: whatever happened before, the slowest worker that trains gets its answer.
TEST(Bounded, AlwaysAnswersSomebodySoThatNoJobStandsStill) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed, 1);
    const int workers = 2 + static_cast<int>(random.below(6));
    const auto rule = make_bounded_staleness(workers, static_cast<std::int64_t>(random.below(4)));
    std::vector<int> trains(static_cast<std::size_t>(workers));
    for (int i = 0; i < workers; ++i) trains[static_cast<std::size_t>(i)] = i;
    std::vector<bool> waits(static_cast<std::size_t>(workers), false);
    for (int event = 0; event < 400; ++event) {
      const int worker = trains[random.below(trains.size())];
      if (trains.size() > 1 && random.below(100) == 0) {
        rule->on_leave(worker);
        std::erase(trains, worker);
      } else if (!waits[static_cast<std::size_t>(worker)]) {
        rule->on_push(worker);
        waits[static_cast<std::size_t>(worker)] = true;
      }
      for (const int one : trains) {
        if (waits[static_cast<std::size_t>(one)] && rule->may_answer(one)) waits[static_cast<std::size_t>(one)] = false;
      }
      ASSERT_FALSE(std::ranges::all_of(trains, [&](int one) { return waits[static_cast<std::size_t>(one)]; }))
          << "all workers wait for an answer; seed " << seed << ", event " << event;
    }
  }
}

// The engine's own rule, over drawn pushes: neither more nor less is held back.
TEST(Bounded, DecidesAsTheEngineDoes) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed, 2);
    const int workers = 1 + static_cast<int>(random.below(8));
    const auto bound = static_cast<std::int64_t>(random.below(5));
    const auto rule = make_bounded_staleness(workers, bound);
    ps::Membership members(workers);
    ps::ConsistencyState engine(*ps::Consistency::parse("bounded:" + std::to_string(bound)), members);
    for (int event = 0; event < 300; ++event) {
      const auto worker = static_cast<int>(random.below(static_cast<std::uint64_t>(workers)));
      if (!members.is_live(worker)) continue;
      if (random.below(60) == 0) {
        rule->on_leave(worker);
        members.lose(worker);
      } else {
        rule->on_push(worker);
        engine.on_push({.worker = worker, .clock = engine.clock(worker) + 1});
      }
      for (int one = 0; one < workers; ++one) {
        if (!members.is_live(one)) continue;
        ASSERT_EQ(rule->may_answer(one), engine.may_respond(one))
            << "worker " << one << " of " << workers << ", bound " << bound << ", seed " << seed << ", event " << event;
      }
    }
  }
}

}  // namespace
}  // namespace syncopate::course
