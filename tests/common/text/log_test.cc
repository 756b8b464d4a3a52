#include "common/text/log.h"

#include <gtest/gtest.h>

namespace syncopate {
namespace {

class Log : public testing::Test {
 protected:
  Log() { start_log("worker 1", "%n [%l] %v"); }
  // As spdlog has it when a program starts.
  ~Log() override { start_log("", "[%Y-%m-%d %H:%M:%S.%e] [%l] %v"); }

  void SetUp() override { testing::internal::CaptureStderr(); }
  std::string written() { return testing::internal::GetCapturedStderr(); }
};

TEST_F(Log, HasLinesByThePattern) {
  log_info("membership {} is over", 3);
  log_warning("shard {}: goes on without worker {}", 0, 1);
  log_error("{:.1f} s", 2.0);
  EXPECT_EQ(written(),
            "worker 1 [info] membership 3 is over\n"
            "worker 1 [warning] shard 0: goes on without worker 1\n"
            "worker 1 [error] 2.0 s\n");
}

TEST_F(Log, LeavesOutWhatIsForDebugging) {
  log_debug("worker {}", 1);
  EXPECT_EQ(written(), "");
}

TEST_F(Log, NeitherDrivesATerminalNorBeginsAnotherMessage) {
  log_info("told to stop: {}", "\x1b[2J\nworker 2 [error] it was me\xff");
  EXPECT_EQ(written(), "worker 1 [info] told to stop: \\x1b[2J\\nworker 2 [error] it was me\\xff\n");
}

TEST_F(Log, GivesMessagesToWhoHasRedirectedItAndWritesWhatHeRefuses) {
  std::string taken;
  {
    const RedirectedLog redirected([&](LogLevel level, const std::string& message) {
      if (level != LogLevel::kInfo) return false;
      taken += message;
      return true;
    });
    log_info("shard {}", 0);
    log_error("shard {}", 1);
  }
  log_info("shard {}", 2);
  EXPECT_EQ(taken, "shard 0");
  EXPECT_EQ(written(), "worker 1 [error] shard 1\nworker 1 [info] shard 2\n");
}

}  // namespace
}  // namespace syncopate
