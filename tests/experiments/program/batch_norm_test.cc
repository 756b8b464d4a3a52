// A model with batch norm, whose workers keep a state of their own, in every mode.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "experiments/report/safetensors.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing_support::lines_of;
using testing_support::Program;
using testing_support::ProgramEnd;

using Flags = std::vector<std::string>;

// 16 steps an epoch.
Flags resnet(const Flags& mode) {
  Flags flags{"--model=resnet20",  "--workers=2",          "--batch-size=4",      "--train-samples=128",
              "--test-samples=64", "--optimizer=momentum", "--learning-rate=0.02"};
  flags.insert(flags.end(), mode.begin(), mode.end());
  return flags;
}

class BatchNormRun : public testing::TestWithParam<Flags> {};

TEST_P(BatchNormRun, LearnsAndIsEvaluatedWithTheMomentsThatItsWorkersHaveKept) {
  Program program(resnet(GetParam()));
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const nlohmann::json summary = program.summary();
  EXPECT_EQ(summary["outcome"], "completed");
  // With initial moments, 0 and 1, a network of 20 layers is no better than chance, and its loss is beyond that.
  EXPECT_LT(summary["final_test_loss"], 2.3) << end.out;
  EXPECT_GT(summary["final_test_accuracy"], 0.2);

  const Result<SafetensorsFile> file = read_safetensors(program.output() / "model.safetensors");
  ASSERT_TRUE(file.ok()) << file.status().message();
  int moments = 0;
  for (const SafetensorsFile::Tensor& tensor : file->tensors) {
    if (!tensor.name.ends_with(".running_var")) continue;
    ++moments;
    for (float variance : tensor.values) {
      EXPECT_GT(variance, 0) << tensor.name;
      EXPECT_NE(variance, 1) << tensor.name;
    }
  }
  EXPECT_EQ(moments, 19);
}

std::string name_of_case(const testing::TestParamInfo<Flags>& info) {
  return info.param.front().substr(sizeof("--mode=") - 1) + (info.param[1] == "--consistency=async" ? "Async" : "");
}

INSTANTIATE_TEST_SUITE_P(, BatchNormRun,
                         testing::Values(Flags{"--mode=local", "--workers=1", "--epochs=4"},
                                         Flags{"--mode=allreduce", "--epochs=6"},
                                         Flags{"--mode=ps", "--consistency=sync", "--epochs=6"},
                                         Flags{"--mode=ps", "--consistency=async", "--epochs=6"}),
                         name_of_case);

}  // namespace
}  // namespace syncopate::experiments
