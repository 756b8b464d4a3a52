#include "ps/policy/worker_clocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

namespace syncopate::ps {
namespace {

std::int64_t slowest_of(const WorkerClocks& clocks) {
  std::int64_t slowest = std::numeric_limits<std::int64_t>::max();
  for (int worker = 0; worker < clocks.workers(); ++worker) {
    if (clocks.is_live(worker)) slowest = std::min(slowest, clocks.of(worker));
  }
  return slowest;
}

// The slowest is kept, and looked for anew only when it may be another: it must be the same at every call.
TEST(WorkerClocks, KnowTheSlowestWhateverHasHappened) {
  std::mt19937 random(7);
  const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  for (int job = 0; job < 200; ++job) {
    const int workers = 1 + below(5);
    Membership members(workers);
    for (int worker = 0; worker < workers; ++worker) ASSERT_TRUE(members.join(worker, {}).ok());
    ASSERT_TRUE(members.start_if_all_joined(true));
    WorkerClocks clocks(members);
    for (int event = 0; event < 60; ++event) {
      const int worker = below(workers), what = below(20);
      if (what == 0 && members.is_joined(worker)) {
        ASSERT_TRUE(members.leave(worker).ok());
      } else if (what == 1) {
        members.lose(worker);
      } else if (what == 2) {
        clocks.set(worker, clocks.of(worker) - 1);  // a push that is undone
      } else {
        clocks.set(worker, clocks.of(worker) + 1);
      }
      if (below(3) > 0) EXPECT_EQ(clocks.slowest(), slowest_of(clocks)) << "job " << job << ", event " << event;
      int live = 0;
      for (int each = 0; each < workers; ++each) live += members.is_live(each) ? 1 : 0;
      EXPECT_EQ(members.live(), live);
    }
  }
}

}  // namespace
}  // namespace syncopate::ps
