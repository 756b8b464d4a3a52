#include "experiments/config/measure_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiments/config/typed_line.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(AProfileLine, MeasuresOneWorkerAndNamesItsFileByTheModel) {
  const Result<CommandLine> line = profile_line({{"model", "mlp:784-64-10"}, {"batch-size", "16"}});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->action, CommandLine::Action::kProfile);
  EXPECT_EQ(line->config.mode, Mode::kLocal);
  EXPECT_EQ(line->config.batch_size, 16);
  EXPECT_EQ(line->config.output, "mlp-784-64-10.json");
}

TEST(AProfileLine, RefusesWhatItWouldIgnore) {
  EXPECT_THAT(profile_line({{"workers", "3"}}).status().message(),
              StartsWith("--workers=3: has no effect on what profile measures; leave it out"));
  EXPECT_THAT(profile_line({{"output", "mlp"}}).status().message(), HasSubstr("must end in .json"));
  EXPECT_THAT(profile_line({{"batch-size", "0"}}).status().message(), StartsWith("--batch-size=0:"));
  EXPECT_THAT(profile_line({{"model", "profile:resnet50"}}).status().message(), HasSubstr("computes nothing"));
}

TEST(ACalibrateLine, MeasuresThisMachineOrTwoHosts) {
  const Result<CommandLine> here = calibrate_line({{"transport", "tcp"}});
  ASSERT_TRUE(here.ok()) << here.status().message();
  EXPECT_EQ(here->action, CommandLine::Action::kCalibrate);
  EXPECT_EQ(here->config.workers, 2);
  EXPECT_EQ(here->config.output, "cluster.toml");
  const Result<CommandLine> hosts = calibrate_line({{"hosts", "node1:8,node2:8"}});
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  EXPECT_EQ(hosts->config.hosts[1].slots, 1) << "one worker on each";
}

TEST(ACalibrateLine, RefusesWhatItWouldIgnore) {
  EXPECT_THAT(calibrate_line({{"hosts", "a,b,c"}}).status().message(), HasSubstr("name two that stand for all"));
  EXPECT_THAT(calibrate_line({{"transport", "shm"}}).status().message(), HasSubstr("use tcp or sockets"));
  EXPECT_THAT(calibrate_line({{"output", "cluster.json"}}).status().message(), HasSubstr("must end in .toml"));
  EXPECT_THAT(calibrate_line({{"servers", "2"}}).status().message(), HasSubstr("what calibrate measures"));
}

}  // namespace
}  // namespace syncopate::experiments
