#include "experiments/exit_code.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TEST(ExitCode, OfUsageIsTheOneThatShellsExpect) { EXPECT_EQ(static_cast<int>(ExitCode::kUsage), 2); }

}  // namespace
}  // namespace syncopate::experiments
