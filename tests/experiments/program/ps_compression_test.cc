// Parameter servers whose gradients and weights travel compressed.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing_support::Program;
using testing_support::ProgramEnd;
using Flags = std::vector<std::string>;

constexpr double kMlpBytes = 4 * (784 * 32 + 32 + 32 * 10 + 10);

// So that both workers train at the same time, however late one of them begins: only then there are figures.
constexpr const char* kWaits = "--straggler=all:+0.5";

Flags ps_job(const std::string& codec, const Flags& more) {
  Flags flags{"--mode=ps",
              "--workers=2",
              "--servers=2",
              "--model=mlp:784-32-10",
              "--batch-size=16",
              "--train-samples=4096",
              "--test-samples=512",
              "--steps=300",
              kWaits,
              "--compress=" + codec};
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

struct Codec {
  const char* name;
  double part;  // of a gradient's bytes, at most
};

void PrintTo(const Codec& codec, std::ostream* out) { *out << codec.name; }

class PsCompression : public testing::TestWithParam<Codec> {};

INSTANTIATE_TEST_SUITE_P(Codec, PsCompression,
                         testing::Values(Codec{"fp16", 0.501}, Codec{"bf16", 0.501}, Codec{"int8", 0.252},
                                         Codec{"topk:0.05", 0.101}, Codec{"randomk:0.2", 0.201}, Codec{"sign", 0.033}),
                         [](const auto& codec) {
                           const std::string name = codec.param.name;
                           return name.substr(0, name.find(':'));
                         });

TEST_P(PsCompression, LearnsUnderSyncAndAsync) {
  for (const char* consistency : {"sync", "async"}) {
    Program program(ps_job(GetParam().name, {std::string("--consistency=") + consistency}));
    const ProgramEnd end = program.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    const nlohmann::json summary = program.summary();
    EXPECT_GT(summary["final_test_accuracy"], 0.4) << consistency;  // guessing: 0.1
    EXPECT_LT(summary["bytes_out_per_step"], GetParam().part * kMlpBytes);
    EXPECT_EQ(summary["bytes_in_per_step"], summary["bytes_out_per_step"]);
    EXPECT_GT(summary["step_split_ms"]["codec"], 0);
    EXPECT_THAT(end.out, HasSubstr(fmt::format("ps {} {}, 2 workers", consistency, GetParam().name)));
  }
}

TEST(PsCompressionOfAnswers, CanBeLeftOut) {
  Program program(ps_job("int8", {"--compress-answers=off", "--delay-compensation=0.04"}));
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const nlohmann::json summary = program.summary();
  EXPECT_GT(summary["bytes_in_per_step"], 0.99 * kMlpBytes);
  EXPECT_LT(summary["bytes_out_per_step"], 0.26 * kMlpBytes);
  EXPECT_THAT(end.out, HasSubstr("ps async int8 (answers in full), 2 workers"));
}

TEST(PsCompressionUnderSync, IsRepeatedExactly) {
  const Flags flags = ps_job("randomk:0.2", {"--consistency=sync"});
  Program first(flags), again(flags);
  ASSERT_EQ(first.wait().exit_code, 0);
  ASSERT_EQ(again.wait().exit_code, 0);
  EXPECT_FALSE(first.weights().empty());
  EXPECT_TRUE(first.weights() == again.weights());
}

}  // namespace
}  // namespace syncopate::experiments
