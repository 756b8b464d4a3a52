// A model with batch norm, whose workers keep moments of their own, in every mode.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "experiments/checkpoint/safetensors.h"
#include "experiments/cluster/process/data_of.h"
#include "experiments/cluster/process/evaluation.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing_support::lines_of;
using testing_support::Program;
using testing_support::ProgramEnd;

using Flags = std::vector<std::string>;

constexpr std::int64_t kTrainSamples = 128;
constexpr std::int64_t kTestSamples = 32;
constexpr int kEpochs = 8;

Flags resnet(const Flags& mode) {
  Flags flags{
      "--model=resnet20", "--batch-size=8", fmt::format("--train-samples={}", kTrainSamples),
      fmt::format("--test-samples={}", kTestSamples),
      // Without momentum, which adds to what stale gradients do: under `async` the order of the pushes is not ours.
      "--optimizer=sgd", "--learning-rate=0.05", fmt::format("--epochs={}", kEpochs)};
  flags.insert(flags.end(), mode.begin(), mode.end());
  return flags;
}

// The tensors of `layout` as a file has them.
std::vector<float> arena_of(const SafetensorsFile& file, const ParamLayout& layout) {
  std::vector<float> arena(layout.size());
  for (const TensorSpec& tensor : layout.tensors()) {
    const auto found = std::ranges::find(file.tensors, tensor.name, &SafetensorsFile::Tensor::name);
    EXPECT_NE(found, file.tensors.end()) << tensor.name;
    if (found == file.tensors.end()) continue;
    std::ranges::copy(found->values, arena.begin() + static_cast<std::ptrdiff_t>(tensor.range.begin));
  }
  return arena;
}

// Mean over the steps of this epoch, by what the workers have recorded: columns worker, step, epoch and, last, loss.
double mean_loss(const std::string& steps_csv, int epoch) {
  double sum = 0;
  int count = 0;
  for (const std::string& line : lines_of(steps_csv)) {
    std::vector<std::string> fields;
    std::istringstream row(line);
    for (std::string field; std::getline(row, field, ',');) fields.push_back(field);
    if (fields.size() < 5 || fields[3] != std::to_string(epoch)) continue;
    sum += std::stod(fields.back());
    ++count;
  }
  EXPECT_GT(count, 0);
  return sum / count;
}

class BatchNormRun : public testing::TestWithParam<Flags> {};

TEST_P(BatchNormRun, LearnsAndIsEvaluatedWithTheMomentsThatItsWorkersHaveKept) {
  Program program(resnet(GetParam()));
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_LT(mean_loss(program.steps_csv(), kEpochs - 1), 0.6 * mean_loss(program.steps_csv(), 0));

  ResolvedRun config;
  config.model = "resnet20";
  config.train_samples = kTrainSamples;
  config.test_samples = kTestSamples;
  config.data_dir = testing_support::shared_data_dir();
  const ParamLayout layout = *layout_of(config), local_layout = *local_state_layout_of(config);
  const Result<SafetensorsFile> file = read_safetensors(program.output() / "model.safetensors");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->tensors.size(), layout.tensors().size() + local_layout.tensors().size());
  const std::vector<float> weights = arena_of(*file, layout), moments = arena_of(*file, local_layout);
  const Result<worker::DatasetPair> data = open_data_of(config);
  ASSERT_TRUE(data.ok()) << data.status().message();
  const std::unique_ptr<worker::ComputeBackend> backend = backend_of(config);
  Result<Evaluation> evaluation = Evaluation::create(config.model, *data->test, *backend, kTestSamples);
  ASSERT_TRUE(evaluation.ok()) << evaluation.status().message();
  const double loss = evaluation->run(weights, moments).loss;
  EXPECT_NEAR(program.summary()["final_test_loss"].get<double>(), loss, 1e-4 * loss);
  std::vector<float> others = moments;
  for (float& moment : others) moment *= 1.1f;
  EXPECT_GT(std::abs(evaluation->run(weights, others).loss - loss), 1e-4 * loss);
}

std::string name_of_case(const testing::TestParamInfo<Flags>& info) {
  return info.param.front().substr(sizeof("--mode=") - 1) + (info.param[1] == "--consistency=async" ? "Async" : "");
}

INSTANTIATE_TEST_SUITE_P(, BatchNormRun,
                         testing::Values(Flags{"--mode=local", "--workers=1"}, Flags{"--mode=allreduce", "--workers=2"},
                                         Flags{"--mode=ps", "--consistency=sync", "--workers=2"},
                                         Flags{"--mode=ps", "--consistency=async", "--workers=2"}),
                         name_of_case);

}  // namespace
}  // namespace syncopate::experiments
