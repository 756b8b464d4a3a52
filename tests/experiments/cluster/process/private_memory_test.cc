#include "experiments/cluster/process/private_memory.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/support/slowness.h"

namespace syncopate::experiments {
namespace {

// Whether it holds in a process of its own: what is tried cannot be taken back.
bool holds(bool (*condition)()) {
  const pid_t child = fork();
  if (child == 0) _exit(condition() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

rlim_t core_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_CORE, &limit);
  return limit.rlim_cur;
}

// Not zero, which would let a program have the dump that core_pattern names.
TEST(PrivateMemory, LeavesNoCoreDumpToAFileOrAProgram) {
  EXPECT_TRUE(holds([] {
    leave_no_core_dumps();
    return core_limit() == 1;
  }));
}

TEST(PrivateMemory, StaysWithinALimitThatIsThere) {
  EXPECT_TRUE(holds([] {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    leave_no_core_dumps();
    return core_limit() == 0;
  }));
}

TEST(PrivateMemory, CannotBeTraced) {
  if (testing_support::kSanitized) GTEST_SKIP() << "the search for leaks traces its own process";
  EXPECT_TRUE(holds([] {
    keep_memory_private();
    return prctl(PR_GET_DUMPABLE) == 0;
  }));
}

TEST(PrivateMemory, IsOpenToWhoAsksForThat) {
  EXPECT_TRUE(holds([] {
    const rlimit all{RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_CORE, &all);
    const rlim_t before = core_limit();
    setenv("SYNCOPATE_ALLOW_DUMPS", "1", 1);
    leave_no_core_dumps();
    keep_memory_private();
    return core_limit() == before && prctl(PR_GET_DUMPABLE) == 1;
  }));
}

}  // namespace
}  // namespace syncopate::experiments
