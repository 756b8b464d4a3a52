// How many pieces of work a training step gives to the GPU, model by model: each costs microseconds, whatever it
// computes. Twice as many steps have twice as many, beside what a run has once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "tests/software_gpu/settings.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing_support::Program;
using testing_support::TemporaryFolder;
using testing_support::text_of;

struct StepCounts {
  int kernels = 0;   // our own launches: the model's, the loss's and the update's
  int products = 0;  // of cuBLASLt
  int convolutions = 0;
  int graphs = 0;  // launches
  bool operator==(const StepCounts&) const = default;
};

void PrintTo(const StepCounts& counts, std::ostream* out) {
  *out << counts.kernels << " kernels, " << counts.products << " products, " << counts.convolutions << " convolutions, "
       << counts.graphs << " graphs";
}

// `unfused` is the number of kernels where cuBLASLt has no epilogues, so that biases are our own kernels' work.
struct CountedModel {
  const char* name;
  const char* model;
  std::vector<std::string> data;
  StepCounts step;
  int unfused;
};

void PrintTo(const CountedModel& model, std::ostream* out) { *out << model.name; }

const CountedModel kCountedModels[] = {
    {"Mlp", "mlp", {}, {5, 8, 0}, 11},
    {"Lenet", "lenet", {}, {12, 6, 5}, 16},
    {"Conv", "conv:32-64", {}, {8, 6, 2}, 12},
    {"Resnet20", "resnet20", {}, {96, 3, 56}, 98},
    {"SmallGpt", "gpt:2-2-32", {"--dataset=grammar", "--context=16"}, {36, 27, 0}, 52},
    {"Gpt", "gpt", {"--dataset=grammar", "--context=16"}, {36, 27, 0}, 52},
    // The batch's conversion; the bias of ten classes, which the software cuBLASLt does not fuse in 16 bits, and its
    // gradient. Under fp16 also the search for overflows, and the end of a scaled step.
    {"LenetInBf16", "lenet", {"--precision=bf16"}, {15, 6, 5}, 17},
    {"MlpInFp16", "mlp", {"--precision=fp16"}, {10, 8, 0}, 14},
};

class StepCount : public testing::TestWithParam<CountedModel> {
 protected:
  static StepCounts counts_of_run(int steps, const std::string& graphs) {
    const TemporaryFolder folder;
    const std::filesystem::path file = folder.path() / "counts";
    const std::vector<std::string> flags{"--train-samples=1024",
                                         "--test-samples=64",
                                         "--batch-size=8",
                                         "--mode=local",
                                         "--device=cuda",
                                         "--cuda-graphs=" + graphs,
                                         fmt::format("--model={}", GetParam().model),
                                         fmt::format("--steps={}", steps)};
    setenv("SOFTWARE_GPU_COUNTS", file.c_str(), 1);
    Program program(testing_support::operator+(flags, GetParam().data));
    unsetenv("SOFTWARE_GPU_COUNTS");
    const testing_support::ProgramEnd end = program.wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;

    StepCounts counts;
    std::istringstream lines(text_of(file));
    std::string call;
    for (long process = 0, times = 0, bytes = 0; lines >> process >> call >> times >> bytes;) {
      const int count = static_cast<int>(times);
      if (call == "launches") counts.kernels += count;
      if (call == "cublasLtMatmul") counts.products += count;
      if (call.starts_with("cudnnConvolution")) counts.convolutions += count;
      if (call == "cudaGraphLaunch") counts.graphs += count;
    }
    return counts;
  }

  static StepCounts counts_of_step(const std::string& graphs) {
    constexpr int kSteps = 3;  // the first, and one to capture for each turn
    const StepCounts once = counts_of_run(kSteps, graphs), twice = counts_of_run(2 * kSteps, graphs);
    const auto per_step = [](int less, int more) {
      EXPECT_EQ((more - less) % kSteps, 0);
      return (more - less) / kSteps;
    };
    return {per_step(once.kernels, twice.kernels), per_step(once.products, twice.products),
            per_step(once.convolutions, twice.convolutions), per_step(once.graphs, twice.graphs)};
  }
};

INSTANTIATE_TEST_SUITE_P(Of, StepCount, testing::ValuesIn(kCountedModels),
                         [](const auto& model) { return model.param.name; });

TEST_P(StepCount, IsWhatItWas) {
  StepCounts expected = GetParam().step;
  if (!software_gpu::settings().fuses_epilogues()) expected.kernels = GetParam().unfused;
  EXPECT_EQ(counts_of_step("off"), expected);
}

TEST_P(StepCount, IsOneGraphWhereStepsAreCaptured) { EXPECT_EQ(counts_of_step("on"), (StepCounts{.graphs = 1})); }

}  // namespace
}  // namespace syncopate::experiments
