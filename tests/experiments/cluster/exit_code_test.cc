#include "experiments/cluster/exit_code.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TEST(ExitCode, TellsClassesOfFailureApart) {
  EXPECT_EQ(exit_code_of(Status()), ExitCode::kSuccess);
  EXPECT_EQ(exit_code_of(Status::invalid_argument("")), ExitCode::kUsage);
  EXPECT_EQ(exit_code_of(Status::not_found("")), ExitCode::kData);
  EXPECT_EQ(exit_code_of(Status::data_loss("")), ExitCode::kData);
  EXPECT_EQ(exit_code_of(Status::resource_exhausted("")), ExitCode::kOutput);
  EXPECT_EQ(exit_code_of(Status::peer_lost("")), ExitCode::kProcessLost);
  EXPECT_EQ(exit_code_of(Status::deadline_exceeded("")), ExitCode::kTimeout);
  EXPECT_EQ(exit_code_of(Status::internal("")), ExitCode::kInternal);
}

TEST(ExitCode, OfUsageAndSignalsAreThoseThatShellsExpect) {
  EXPECT_EQ(static_cast<int>(ExitCode::kUsage), 2);
  EXPECT_EQ(static_cast<int>(ExitCode::kInterrupted), 130);
  EXPECT_EQ(static_cast<int>(ExitCode::kTerminated), 143);
}

}  // namespace
}  // namespace syncopate::experiments
