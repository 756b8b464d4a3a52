#include "experiments/exit_code.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TEST(ExitCode, TellsClassesOfFailureApart) {
  EXPECT_EQ(exit_code_of(Status()), ExitCode::kSuccess);
  EXPECT_EQ(exit_code_of(Status(Code::kInvalidArgument, "")), ExitCode::kUsage);
  EXPECT_EQ(exit_code_of(Status(Code::kNotFound, "")), ExitCode::kData);
  EXPECT_EQ(exit_code_of(Status(Code::kDataLoss, "")), ExitCode::kData);
  EXPECT_EQ(exit_code_of(Status(Code::kResourceExhausted, "")), ExitCode::kOutput);
  EXPECT_EQ(exit_code_of(Status(Code::kPeerLost, "")), ExitCode::kProcessLost);
  EXPECT_EQ(exit_code_of(Status(Code::kDeadlineExceeded, "")), ExitCode::kTimeout);
  EXPECT_EQ(exit_code_of(Status(Code::kInternal, "")), ExitCode::kInternal);
}

TEST(ExitCode, OfUsageAndInterruptAreThoseThatShellsExpect) {
  EXPECT_EQ(static_cast<int>(ExitCode::kUsage), 2);
  EXPECT_EQ(static_cast<int>(ExitCode::kInterrupted), 130);
}

}  // namespace
}  // namespace syncopate::experiments
