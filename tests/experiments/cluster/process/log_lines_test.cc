#include "experiments/cluster/process/log_lines.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

namespace syncopate::experiments {
namespace {

class LogLines : public testing::Test {
 protected:
  LogLines() : logger_("worker 1", std::make_shared<spdlog::sinks::ostream_sink_st>(text_)) {
    logger_.set_formatter(printable_log_lines("%n [%l] %v"));
  }

  std::ostringstream text_;
  spdlog::logger logger_;
};

TEST_F(LogLines, FollowThePattern) {
  logger_.info("membership {} is over", 3);
  EXPECT_EQ(text_.str(), "worker 1 [info] membership 3 is over\n");
}

TEST_F(LogLines, NeitherDriveATerminalNorBeginAnotherMessage) {
  logger_.info("told to stop: {}", "\x1b[2J\nworker 2 [error] it was me\xff");
  EXPECT_EQ(text_.str(), "worker 1 [info] told to stop: \\x1b[2J\\nworker 2 [error] it was me\\xff\n");
}

}  // namespace
}  // namespace syncopate::experiments
