#include "ps/policy/dynamic_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "common/random.h"
#include "ps/policy/consistency_state.h"

namespace syncopate::ps {
namespace {

using std::chrono::milliseconds;

TimePoint at(double ms) { return TimePoint(Duration(static_cast<std::int64_t>(ms * 1e6))); }

PushTimes times(double latest, double interval) {
  return {at(latest), Duration(static_cast<std::int64_t>(interval * 1e6))};
}

TEST(DynamicBound, GrantsAsManyPushesAsEndNextToOneOfTheSlowestWorker) {
  // The slowest one pushes at 100, 140, 180 and so on.
  EXPECT_EQ(granted_pushes(times(70, 10), times(60, 40), 8), 3);  // at 70, 80, 90, 100
  EXPECT_EQ(granted_pushes(times(70, 10), times(60, 40), 2), 2);  // as near as it may
  EXPECT_EQ(granted_pushes(times(99, 30), times(60, 40), 8), 0);  // nowhere nearer than now, 1 before
  EXPECT_EQ(granted_pushes(times(70, 35), times(60, 40), 8), 2);  // at 140
  EXPECT_EQ(granted_pushes(times(60, 40), times(60, 40), 8), 1);  // even workers: as many times as it takes
  EXPECT_EQ(granted_pushes(times(70, 10), times(60, 40), 0), 0);
}

TEST(DynamicBound, GrantsNothingWhereNothingCanBePredicted) {
  EXPECT_EQ(granted_pushes(times(70, 0), times(60, 40), 8), 0);
  EXPECT_EQ(granted_pushes(times(70, 10), times(60, 0), 8), 0);
}

// The same by the words of the algorithm: all predicted pushes of both, pair by pair, in doubles.
class PlainController {
 public:
  PlainController(std::int64_t min, std::int64_t max, int workers)
      : min_(min), max_(max), pushes_(static_cast<std::size_t>(workers)) {}

  // Takes a push of worker `p` at `ms`, and returns how far the worker may lead until its next push.
  std::int64_t push(std::size_t p, double ms) {
    pushes_[p].push_back(ms);
    std::size_t slowest = 0, fastest = 0;
    for (std::size_t i = 0; i < pushes_.size(); ++i) {
      if (count(i) > count(fastest)) fastest = i;
      const bool is_less = count(i) < count(slowest);
      const bool is_earlier = count(i) == count(slowest) && !pushes_[i].empty() && !pushes_[slowest].empty() &&
                              pushes_[i].back() < pushes_[slowest].back();
      if (is_less || is_earlier) slowest = i;
    }
    if (left_[p] > 0) {
      --left_[p];
      return max_;
    }
    if (count(p) - count(slowest) <= min_ || count(p) < count(fastest)) return min_;
    left_[p] = controller(p, slowest);
    if (left_[p] == 0) return min_;
    --left_[p];
    return max_;
  }

  std::int64_t lead(std::size_t p) const {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < pushes_.size(); ++i) least = std::min(least, count(i));
    return count(p) - least;
  }

 private:
  std::int64_t count(std::size_t p) const { return static_cast<std::int64_t>(pushes_[p].size()); }

  std::int64_t controller(std::size_t p, std::size_t slowest) const {
    const std::optional<double> own = interval(p), its = interval(slowest);
    if (!own || !its) return 0;
    std::int64_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::int64_t r = 0; r <= max_ - min_; ++r) {
      for (std::int64_t k = 1; k <= 10000; ++k) {
        const double distance = std::abs(pushes_[p].back() + static_cast<double>(r) * *own - pushes_[slowest].back() -
                                         static_cast<double>(k) * *its);
        if (distance >= least) continue;
        least = distance;
        best = r;
      }
    }
    return best;
  }

  std::optional<double> interval(std::size_t p) const {
    if (pushes_[p].size() < 2 || pushes_[p].back() == pushes_[p][pushes_[p].size() - 2]) return std::nullopt;
    return pushes_[p].back() - pushes_[p][pushes_[p].size() - 2];
  }

  std::int64_t min_, max_;
  std::vector<std::vector<double>> pushes_;
  std::map<std::size_t, std::int64_t> left_;
};

// Draws jobs in which whoever may go on pushes after a time of its own. Calls `check` with each push.
template <typename Check>
void for_drawn_jobs(const char* text, int workers, Check&& check) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    Membership members(workers);
    for (int worker = 0; worker < workers; ++worker) ASSERT_TRUE(members.join(worker, {}).ok());
    ConsistencyState state(*Consistency::parse(text), members);
    std::vector<std::int64_t> pace, next;
    for (int worker = 0; worker < workers; ++worker) {
      pace.push_back(1 + static_cast<std::int64_t>(random.below(40)));
      next.push_back(static_cast<std::int64_t>(random.below(40)));
    }
    std::int64_t now = 0;
    for (int pushes = 0; pushes < 120; ++pushes) {
      std::optional<int> first;
      for (int worker = 0; worker < workers; ++worker) {
        const auto i = static_cast<std::size_t>(worker);
        if (state.may_respond(worker) && (!first || next[i] < next[static_cast<std::size_t>(*first)])) first = worker;
      }
      ASSERT_TRUE(first.has_value()) << text << " seed " << seed;  // somebody always goes on
      const auto i = static_cast<std::size_t>(*first);
      now = std::max(now, next[i]);
      state.on_push({.worker = *first, .clock = state.clock(*first) + 1, .arrived = at(static_cast<double>(now))});
      check(state, *first, static_cast<double>(now), seed);
      if (testing::Test::HasFatalFailure()) return;
      next[i] = now + pace[i] + static_cast<std::int64_t>(random.below(5));
    }
  }
}

TEST(DynamicBound, DecidesAsAPlainReadingOfTheAlgorithmDoes) {
  for (const auto& [text, min, max] : {std::tuple("dynamic:0:3", 0, 3), {"dynamic:2:7", 2, 7}, {"dynamic:1:1", 1, 1}}) {
    std::optional<PlainController> plain;
    std::uint64_t of = ~std::uint64_t{0};
    int grown = 0;
    for_drawn_jobs(text, 3, [&](const ConsistencyState& state, int worker, double now, std::uint64_t seed) {
      if (seed != std::exchange(of, seed)) plain.emplace(min, max, 3);
      const std::int64_t bound = plain->push(static_cast<std::size_t>(worker), now);
      const std::int64_t lead = plain->lead(static_cast<std::size_t>(worker));
      ASSERT_EQ(state.may_respond(worker), lead <= bound) << text << " seed " << seed << " at " << now;
      ASSERT_LE(lead, max + 1);
      if (lead > min && lead <= bound) ++grown;
    });
    EXPECT_EQ(grown > 0, max > min) << text;
  }
}

TEST(DynamicBound, IsBoundedWhereItCannotGrow) {
  for (const int bound : {0, 1, 3}) {
    const std::string text = std::to_string(bound);
    Membership members(3);
    ConsistencyState bounded(*Consistency::parse("bounded:" + text), members);
    std::uint64_t of = ~std::uint64_t{0};
    for_drawn_jobs(("dynamic:" + text + ":" + text).c_str(), 3,
                   [&](const ConsistencyState& state, int worker, double, std::uint64_t seed) {
                     if (seed != std::exchange(of, seed)) bounded.restore({0, 0, 0});
                     bounded.on_push({.worker = worker, .clock = state.clock(worker)});
                     for (int i = 0; i < 3; ++i) {
                       ASSERT_EQ(state.may_respond(i), bounded.may_respond(i));
                       for (int j = 0; j < 3; ++j) ASSERT_EQ(state.waits_for(i, j), bounded.waits_for(i, j));
                     }
                   });
  }
}

TEST(DynamicBound, HoldsTheMaximumWhereTheSlowestWorkerDoesNotComeAsPredicted) {
  Membership members(2);
  ConsistencyState state(*Consistency::parse("dynamic:1:4"), members);
  state.on_push({.worker = 1, .clock = 1, .arrived = at(0)});
  state.on_push({.worker = 1, .clock = 2, .arrived = at(40)});
  std::int64_t clock = 0;
  double now = 20;
  while (state.may_respond(0)) state.on_push({.worker = 0, .clock = ++clock, .arrived = at(now += 5)});
  EXPECT_GT(clock, 2 + 1 + 1);
  EXPECT_LE(clock, 2 + 4 + 1);
  EXPECT_TRUE(state.waits_for(0, 1));
  EXPECT_TRUE(state.may_respond(1));
}

// Once the slowest worker is lost, the bound counts from the next one.
TEST(DynamicBound, GoesOnWithoutAWorkerThatIsLost) {
  Membership members(2);
  ConsistencyState state(*Consistency::parse("dynamic:0:2"), members);
  state.restore({90, 7});  // as after a restart
  EXPECT_FALSE(state.may_respond(0));
  EXPECT_TRUE(state.may_respond(1));
  ASSERT_TRUE(members.lose(1));
  EXPECT_TRUE(state.may_respond(0));
}

}  // namespace
}  // namespace syncopate::ps
