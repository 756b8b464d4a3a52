#include "experiments/cluster/coordinator/interrupts.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

namespace syncopate::experiments {
namespace {

class InterruptsTest : public testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(By, InterruptsTest, testing::Values(SIGINT, SIGTERM, SIGHUP),
                         [](const auto& signal) { return std::string("SIG") + sigabbrev_np(signal.param); });

bool readable(const Interrupts& interrupts) {
  pollfd item{.fd = interrupts.handle(), .events = POLLIN, .revents = 0};
  return poll(&item, 1, 0) > 0;
}

TEST_P(InterruptsTest, AreTakenOnceInsteadOfEndingTheProgram) {
  Interrupts interrupts;
  EXPECT_FALSE(readable(interrupts));
  EXPECT_FALSE(interrupts.take());
  raise(GetParam());
  EXPECT_TRUE(readable(interrupts));
  EXPECT_EQ(interrupts.take(), GetParam());
  EXPECT_FALSE(interrupts.take());
}

// However this program was started: some signals may be ignored.
void default_action_of(int number) { signal(number, SIG_DFL); }

TEST_P(InterruptsTest, AreForgottenWithWhatWatchedThem) {
  EXPECT_EXIT(
      {
        default_action_of(GetParam());
        {
          Interrupts interrupts;
          raise(GetParam());
        }
        _exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_P(InterruptsTest, StrikeAsBeforeOnceTheyAreNoLongerWatched) {
  EXPECT_EXIT(
      {
        default_action_of(GetParam());
        { Interrupts interrupts; }
        raise(GetParam());
        _exit(0);
      },
      testing::KilledBySignal(GetParam()), "");
}

}  // namespace
}  // namespace syncopate::experiments
