// Runs behind an emulated link.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/transport/link_shape.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::text_of;
using Flags = std::vector<std::string>;

constexpr double kLenetBytes = 4 * (784 * 32 + 32 + 32 * 10 + 10);

// The model has 100 KB.
Flags job(const Flags& mode, const Flags& more = {}) {
  Flags flags{"--model=mlp:784-32-10", "--batch-size=16", "--train-samples=4096", "--test-samples=512", "--steps=16"};
  flags.insert(flags.end(), mode.begin(), mode.end());
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

nlohmann::json summary_of(const Flags& flags) {
  Program program(flags);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  return program.summary();
}

// Without the frames' bytes: what no link can beat.
double milliseconds_of(double bytes, const LinkShape& shape) {
  return 8e3 * bytes / static_cast<double>(shape.bits_per_second);
}

class Shaped : public testing::TestWithParam<Flags> {};

INSTANTIATE_TEST_SUITE_P(Mode, Shaped,
                         testing::Values(Flags{"--mode=ps", "--consistency=sync", "--workers=2"},
                                         Flags{"--mode=allreduce", "--collective=ring", "--workers=3"}),
                         [](const auto& mode) { return mode.param[0].substr(7); });

TEST_P(Shaped, StepsWaitAtLeastAsLongAsTheirBytesTake) {
  const nlohmann::json summary = summary_of(job(GetParam(), {"--shape=20mbit"}));
  const double bytes = summary["bytes_out_per_step"];
  ASSERT_GT(bytes, kLenetBytes * 0.99);
  // Nothing of a step is sent before its backward pass, and all has come at the end of the wait.
  const nlohmann::json split = summary["step_split_ms"];
  EXPECT_GE(split["backward"].get<double>() + split["exposed_wait"].get<double>(),
            milliseconds_of(bytes, *LinkShape::parse("20mbit")));
  EXPECT_LT(split["forward"].get<double>() + split["backward"].get<double>(), split["exposed_wait"])
      << "the link takes most of the step";
}

TEST_P(Shaped, RunsComeToTheSameWeights) {
  Program plain(job(GetParam()));
  Program shaped(job(GetParam(), {"--shape=100mbit+1ms"}));
  ASSERT_EQ(plain.wait().exit_code, 0);
  ASSERT_EQ(shaped.wait().exit_code, 0);
  EXPECT_FALSE(plain.weights().empty());
  EXPECT_TRUE(plain.weights() == shaped.weights());
}

TEST_P(Shaped, RunsSayThatTheirLinkIsEmulated) {
  Program program(job(GetParam(), {"--shape=100mbit+1ms"}));
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const std::string link = "emulated, 100 Mb/s each way a process, 1 ms one way";
  EXPECT_THAT(end.out, HasSubstr("\n  link              " + link + "\n"));
  EXPECT_EQ(program.summary()["link"], link);
  EXPECT_THAT(text_of(program.output() / "config.toml"), HasSubstr("shape = \"100mbit+1ms\""));
}

TEST(Shape, OfAServerIsSharedByItsShards) {
  const Flags ps{"--mode=ps", "--consistency=sync", "--workers=4", "--shards-per-server=4", "--shape=50mbit"};
  const nlohmann::json summary = summary_of(job(ps));
  // All workers' gradients come in by the one link of the one server. The window may miss a part of a step.
  EXPECT_GE(summary["step_split_ms"]["step"].get<double>(),
            0.9 * milliseconds_of(4 * kLenetBytes, *LinkShape::parse("50mbit")));
}

TEST(Shape, LeavesWhatIsKnownOfTheRealWireAlone) {
  const testing_support::TemporaryFolder cache;
  setenv("XDG_CACHE_HOME", cache.path().c_str(), 1);
  const Flags allreduce{"--mode=allreduce", "--transport=sockets", "--workers=2"};
  const auto finding = [&](const Flags& more) {
    return summary_of(job(allreduce, more))["facts"].value("collective", "");
  };
  // The link's 0.0125 GB/s, or what a busy machine makes of them.
  EXPECT_THAT(finding({"--shape=100mbit"}), testing::MatchesRegex(".* 0\\.0[0-9]+ GB/s \\(measured now\\): .*"));
  EXPECT_THAT(finding({}), HasSubstr("(measured now)"));
  EXPECT_THAT(finding({"--shape=100mbit"}), HasSubstr("(measured in an earlier run)"));
  unsetenv("XDG_CACHE_HOME");
}

// 102 kB take 15 s, and frames some more.
TEST(Shape, OfALinkTooSlowForTheTimeoutIsRefusedBeforeAnythingIsStarted) {
  for (const char* mode : {"--mode=ps", "--mode=allreduce"}) {
    Program program(job({mode}, {"--shape=54kbit", "--timeout=15"}));
    const ProgramEnd end = program.wait();
    EXPECT_EQ(end.exit_code, 2) << end.out;
    EXPECT_THAT(end.err, HasSubstr("--shape=54kbit: the 101.82 kB of initial weights alone take 16 s on this link, and "
                                   "--timeout=15 ends every wait; use a larger --timeout"));
  }
}

}  // namespace
}  // namespace syncopate::experiments
