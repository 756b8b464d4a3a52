#include "simulation/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace syncopate::simulation {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Duration kMs = std::chrono::milliseconds(1);

class AWorld : public testing::TestWithParam<FiberKind> {
 protected:
  void SetUp() override {
    if (GetParam() != FiberKind::kThread && default_fiber_kind() == FiberKind::kThread) {
      GTEST_SKIP() << "sanitizers know nothing of stacks of our own";
    }
  }

  World world_{GetParam()};
  const TimePoint begin_ = world_.now();
  std::vector<std::string> notes_;

  void note(const std::string& what) { notes_.push_back(what + "@" + std::to_string((world_.now() - begin_) / kMs)); }
};

TEST_P(AWorld, LetsEachActorGoOnAtItsTime) {
  world_.start("a", [&] {
    note("a");
    world_.sleep_until(begin_ + 3 * kMs);
    note("a");
  });
  world_.start("b", [&] {
    note("b");
    world_.sleep_until(begin_ + 1 * kMs);
    note("b");
    world_.sleep_until(begin_ + 5 * kMs);
    note("b");
  });
  EXPECT_TRUE(world_.run().ok());
  EXPECT_THAT(notes_, ElementsAre("a@0", "b@0", "b@1", "a@3", "b@5"));
}

TEST_P(AWorld, WakesWhoWaits) {
  world_.start("waits", [&] {
    note(world_.suspend_until(begin_ + 10 * kMs) ? "woken" : "late");
    note(world_.suspend_until(begin_ + 4 * kMs) ? "woken" : "late");
    note(world_.suspend_until(begin_ + 20 * kMs) ? "woken" : "late");
  });
  world_.at(begin_ + 2 * kMs, [&] { world_.wake(0); });
  EXPECT_TRUE(world_.run().ok());
  EXPECT_THAT(notes_, ElementsAre("woken@2", "late@4", "late@20"));
}

TEST_P(AWorld, DoesNotCutSleepShort) {
  world_.start("sleeps", [&] {
    world_.sleep_until(begin_ + 3 * kMs);
    note("up");
  });
  world_.at(begin_ + 1 * kMs, [&] { world_.wake(0); });
  EXPECT_TRUE(world_.run().ok());
  EXPECT_THAT(notes_, ElementsAre("up@3"));
}

TEST_P(AWorld, HasEventsOfOneTimeInTheOrderInWhichTheyWereAskedFor) {
  world_.at(begin_ + kMs, [&] { note("first"); });
  world_.at(begin_ + kMs, [&] { note("second"); });
  world_.start("sleeps", [&] {
    world_.sleep_until(begin_ + kMs);
    note("third");
  });
  EXPECT_TRUE(world_.run().ok());
  EXPECT_THAT(notes_, ElementsAre("first@1", "second@1", "third@1"));
}

TEST_P(AWorld, HasActorsThatStartOthers) {
  world_.start("parent", [&] {
    for (int i = 0; i < 100; ++i) {
      world_.start("child", [&, i] {
        world_.sleep_until(begin_ + (i % 7) * kMs);
        if (i % 50 == 0) note("child " + std::to_string(i));
      });
    }
    world_.sleep_until(begin_ + 2 * kMs);
    note("parent");
  });
  EXPECT_TRUE(world_.run().ok());
  EXPECT_THAT(notes_, ElementsAre("child 0@0", "child 50@1", "parent@2"));
}

TEST_P(AWorld, NamesThoseWhoWaitForEver) {
  world_.start("worker 0", [&] {
    world_.suspend_until(TimePoint::max());
    note("goes on");
  });
  world_.start("worker 1", [&] { note("ends"); });
  world_.start("server 0", [&] { world_.suspend_until(TimePoint::max()); });
  const Status status = world_.run();
  EXPECT_EQ(status.code(), Code::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("still wait: worker 0, server 0"));
  EXPECT_THAT(notes_, ElementsAre("ends@0"));
}

// Killed with the one that has started it, and not awaited by the world.
TEST_P(AWorld, LetsTheTimeOfWhatIsProcessedPass) {
  world_.set_seconds_per_byte(Processing::kUpdate, 1e-6);
  world_.start("worker", [&] {
    world_.clock().processed(Processing::kUpdate, 2000);
    note("updated");
    world_.clock().processed(Processing::kSum, 2000);
    note("summed");
  });
  EXPECT_TRUE(world_.run().ok());
  EXPECT_THAT(notes_, ElementsAre("updated@2", "summed@2"));
}

TEST_P(AWorld, NeverGoesOnWithAGroupThatIsKilled) {
  const World::GroupId group = world_.start_group("process", [&] {
    world_.start("its thread", [&] {
      world_.sleep_until(begin_ + 4 * kMs);
      note("its thread");
    });
    note("process");
    world_.sleep_until(begin_ + 5 * kMs);
    note("process");
  });
  world_.start("other", [&] {
    world_.sleep_until(begin_ + 2 * kMs);
    world_.kill(group);
    world_.sleep_until(begin_ + 6 * kMs);
    note("other");
  });
  EXPECT_TRUE(world_.run().ok());
  EXPECT_THAT(notes_, ElementsAre("process@0", "other@6"));
}

TEST_P(AWorld, GoesOnWithoutAGroupThatKillsItself) {
  World::GroupId group = 0;
  group = world_.start_group("process", [&] {
    world_.start("its thread", [&] {
      world_.sleep_until(begin_ + 4 * kMs);
      world_.kill(group);
      note("its thread");
    });
    world_.sleep_until(begin_ + 5 * kMs);
    note("process");
  });
  world_.start("other", [&] {
    EXPECT_NE(world_.running_group(), group);
    world_.sleep_until(begin_ + 6 * kMs);
    note("other");
  });
  EXPECT_TRUE(world_.run().ok());
  EXPECT_THAT(notes_, ElementsAre("other@6"));
}

TEST_P(AWorld, HasWhatAFrozenGroupMissedHappenWhenItIsThawed) {
  const World::GroupId group = world_.start_group("process", [&] {
    for (int i = 1; i <= 3; ++i) {
      world_.sleep_until(begin_ + 2 * i * kMs);
      note("process");
    }
  });
  world_.at(begin_ + 3 * kMs, [&] { world_.freeze(group); });
  world_.at(begin_ + 7 * kMs, [&] { world_.thaw(group); });
  EXPECT_TRUE(world_.run().ok());
  EXPECT_THAT(notes_, ElementsAre("process@2", "process@7", "process@7"));
}

TEST_P(AWorld, NamesWhoPollsTheClock) {
  world_.start("worker 3", [&] {
    while (world_.clock().now() < begin_ + kMs) {
    }
  });
  EXPECT_THAT([&] { (void)world_.run(); },
              testing::ThrowsMessage<std::logic_error>(HasSubstr("worker 3 looks at the clock again and again")));
}

TEST_P(AWorld, EndsTheOthersBeforeItThrowsWhatAnActorHasThrown) {
  world_.start("throws", [] { throw std::runtime_error("no memory"); });
  world_.start("goes on", [&] {
    world_.sleep_until(begin_ + kMs);
    note("done");
  });
  EXPECT_THAT([&] { (void)world_.run(); }, testing::ThrowsMessage<std::runtime_error>("no memory"));
  EXPECT_THAT(notes_, ElementsAre("done@1"));
}

INSTANTIATE_TEST_SUITE_P(Of, AWorld, testing::Values(FiberKind::kFiber, FiberKind::kThread),
                         [](const auto& kind) { return kind.param == FiberKind::kFiber ? "Fibers" : "Threads"; });

}  // namespace
}  // namespace syncopate::simulation
