// --compress as a person uses it: real processes, real data.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/codec/codec.h"
#include "common/param_layout.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing_support::lines_of;
using testing_support::Program;
using testing_support::ProgramEnd;

constexpr int kSteps = 300;

// Each worker has 32 samples a batch. A tenth of the digits is guessed right by chance.
std::vector<std::string> allreduce_job(const std::string& codec) {
  return {"--mode=allreduce",     "--workers=2",        "--model=mlp:784-32-10",           "--batch-size=32",
          "--train-samples=4096", "--test-samples=512", fmt::format("--steps={}", kSteps), "--compress=" + codec};
}

// What one of two workers sends in a step: its half of the other's sum, and the sum of its own; with top-k its choice;
// else 2(n-1)/n of what is summed.
std::size_t bytes_a_step(const CodecConfig& config) {
  ParamLayout layout;
  layout.add("dense1.weight", {784, 32});
  layout.add("dense1.bias", {32});
  layout.add("dense2.weight", {32, 10});
  layout.add("dense2.bias", {10});
  if (config.kind == CodecKind::kPowerSgd) {
    const std::size_t rank = static_cast<std::size_t>(config.rank);
    return sizeof(float) * (rank * (784 + 32 + 32 + 10) + 32 + 10);
  }
  if (config.kind == CodecKind::kNone) return sizeof(float) * layout.size();
  const Codec codec(config, tensor_ranges(layout));
  if (config.kind == CodecKind::kTopK || config.kind == CodecKind::kTopK2Bit || config.kind == CodecKind::kRandomK) {
    return codec.encoded_size(layout.size());
  }
  std::size_t bytes = 0;
  for (const Range& half : balanced_ranges(layout.size(), 2)) bytes += codec.encoded_size(half.size(), half.begin);
  return bytes;
}

class CompressedTraining : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(With, CompressedTraining,
                         testing::Values("none", "fp16", "bf16", "int8", "topk:0.02", "topk2bit:0.05", "randomk:0.25",
                                         "sign", "powersgd:2"),
                         [](const auto& tested) {
                           const std::string codec = tested.param;
                           return codec.substr(0, codec.find(':'));
                         });

TEST_P(CompressedTraining, LearnsDigitsAndRecordsWhatItCosts) {
  Program program(allreduce_job(GetParam()));
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const nlohmann::json report = program.summary();
  EXPECT_GT(report["final_test_accuracy"].get<double>(), 0.75);
  const bool compresses = std::string(GetParam()) != "none";
  EXPECT_EQ(report["step_split_ms"]["codec"].get<double>() > 0, compresses);
  EXPECT_EQ(end.out.find("ms a step to compress and decompress") != std::string::npos, compresses);
  if (compresses) EXPECT_THAT(end.out, HasSubstr(fmt::format("allreduce direct {}, 2 workers", GetParam())));
  EXPECT_EQ(report["bytes_out_per_step"].get<double>(), static_cast<double>(bytes_a_step(*parse_codec(GetParam()))));
  fmt::print("{}: accuracy {}, {} bytes out a step\n", GetParam(), report["final_test_accuracy"].get<double>(),
             report["bytes_out_per_step"].get<double>());
}

// A meeting sends of what workers have come to what a step sends of gradients.
TEST_P(CompressedTraining, LearnsDigitsWhereWorkersMeetEveryFifthStep) {
  std::vector<std::string> flags = allreduce_job(GetParam());
  flags.insert(flags.end(), {"--sync-every=5", "--outer-momentum=0.5"});
  Program program(flags);
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_GT(program.summary()["final_test_accuracy"].get<double>(), 0.4);
  double sent = 0;
  for (const std::string& cell : program.column("steps.csv", "bytes_out")) sent += std::stod(cell);
  EXPECT_EQ(sent, 2 * (kSteps / 5) * static_cast<double>(bytes_a_step(*parse_codec(GetParam()))));
}

TEST(StreamedMeetings, AreRefusedBeforeAnythingStartsWhereTensorsAreTooFew) {
  Program program({"--mode=allreduce", "--sync-every=8", "--sync-fragments=7", "--model=mlp:784-32-10", "--steps=20"});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, HasSubstr("--sync-fragments=7: mlp:784-32-10 has 4 tensors, and a fragment is of whole ones; "
                                 "use at most 4"));
}

// Each fragment meets once in six steps; what the last meetings send counts in no step.
TEST(StreamedMeetings, SendEachFragmentOnceAPeriodBesideOtherSteps) {
  std::vector<std::string> flags = allreduce_job("none");
  flags.insert(flags.end(), {"--collective=ring", "--transport=sockets", "--sync-every=6", "--sync-fragments=2",
                             "--sync-overlap=2", "--outer-momentum=0.5"});
  Program program(flags);
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("sync-every:6 in 2 fragments beside 2 steps"));
  EXPECT_GT(program.summary()["final_test_accuracy"].get<double>(), 0.75);
  double sent = 0;
  for (const std::string& cell : program.column("steps.csv", "bytes_out")) sent += std::stod(cell);
  const double whole = 2 * static_cast<double>(bytes_a_step(*parse_codec("none"))), meetings = kSteps / 6;
  EXPECT_LE(sent, meetings * whole);
  EXPECT_GT(sent, (meetings - 1) * whole);
}

// What is measured begins behind the freeze.
TEST(OneBitAdamTraining, LearnsDigitsAndSendsWhatTheCodecSaysOnceTheVarianceIsFrozen) {
  std::vector<std::string> flags = allreduce_job("sign");
  flags.insert(flags.end(), {"--optimizer=adam", "--adam-freeze-variance=60", "--warmup-steps=65"});
  Program program(flags);
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("allreduce direct sign after 60 whole updates, 2 workers"));
  EXPECT_THAT(end.out, testing::Not(HasSubstr("likely to cost accuracy")));
  const nlohmann::json report = program.summary();
  EXPECT_GT(report["final_test_accuracy"].get<double>(), 0.75);
  EXPECT_EQ(report["bytes_out_per_step"].get<double>(), static_cast<double>(bytes_a_step(*parse_codec("sign"))));
}

}  // namespace
}  // namespace syncopate::experiments
