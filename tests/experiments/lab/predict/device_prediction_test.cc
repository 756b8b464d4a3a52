#include "experiments/lab/predict/device_prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "experiments/cluster/process/data_of.h"
#include "experiments/cluster/process/fitting_batch.h"
#include "experiments/config/help_text.h"
#include "experiments/lab/predict/prediction_line.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::TemporaryFolder;
using Flags = std::vector<std::string>;

DevicePrediction predicted(const Flags& flags) {
  const Result<DevicePrediction> prediction = parse_device_prediction(flags);
  EXPECT_TRUE(prediction.ok()) << prediction.status().message();
  return prediction.ok() ? *prediction : DevicePrediction();
}

std::string refusal(const Flags& flags) { return std::string(parse_device_prediction(flags).status().message()); }

// A device of 1 GFLOPS whose memory gives 100 MB a second.
class SlowDevice : public testing::Test {
 protected:
  SlowDevice() {
    std::ofstream(file_) << "name = \"slow\"\nfp32 = \"1GFLOPS\"\nfp16 = \"2GFLOPS\"\nbandwidth = \"100MB/s\"\n"
                            "memory = \"10MB\"\nlaunch = \"1ms\"\nsource = \"this test\"\n";
  }
  Flags of(const Flags& flags) const {
    Flags all = {"--device=" + file_};
    all.insert(all.end(), flags.begin(), flags.end());
    return all;
  }

  const TemporaryFolder folder_;
  const std::string file_ = folder_.path() / "slow.toml";
};

// Digits have 784 pixels and 10 classes. Arenas have tensors of 7840 and, padded, 16 values.
TEST_F(SlowDevice, TakesAsLongAsByHand) {
  const DevicePrediction prediction = predicted(of({"--model=softmax", "--batch-size=2", "--optimizer=momentum"}));
  const double product = 2.0 * 2 * 784 * 10;  // FLOPs: 31 us, and the bytes take longer
  EXPECT_DOUBLE_EQ(prediction.work.forward[0].flops, product);
  const double forward = 4.0 * (2 * 784 + 7840 + 10 + 2 * 10), loss = 4.0 * (20 + 20) + 4 * 2;
  const double backward = 4.0 * (2 * 784 + 2 * 10 + 7840 + 10);
  const double weights = 7840 + 16, update = 4 * weights * (3 + 2);
  const double kBandwidth = 100e6;
  EXPECT_DOUBLE_EQ(prediction.step().seconds, (forward + loss + backward + update) / kBandwidth);
  EXPECT_DOUBLE_EQ(prediction.step().memory_seconds, prediction.step().seconds);
  EXPECT_DOUBLE_EQ(prediction.step().flops, 2 * product);
  EXPECT_EQ(prediction.step().launches, 1 + 2 + 1 + 1);
  EXPECT_DOUBLE_EQ(prediction.least_seconds(), prediction.step().seconds) << "a graph is captured";
  EXPECT_DOUBLE_EQ(prediction.work.arena_bytes, 4 * weights * 3);
}

// The batch's conversion; the search for overflows, which reads the gradients again, and the loss scale's end of a
// step.
TEST_F(SlowDevice, CountsWhatAScaledLossTakes) {
  const Flags flags = of({"--model=softmax", "--batch-size=2", "--optimizer=momentum"});
  Flags in_half = flags;
  in_half.push_back("--precision=fp16");
  const DevicePrediction in_floats = predicted(flags), scaled = predicted(in_half);
  EXPECT_EQ(scaled.step().launches, in_floats.step().launches + 3);
  const double weights = 7840 + 16;
  EXPECT_DOUBLE_EQ(scaled.work.update.bytes, weights * (4 * (2 + 2) + 2 + 2 + 2));
}

TEST_F(SlowDevice, WaitsForTheHostWhereLaunchesTakeLonger) {
  const DevicePrediction prediction =
      predicted(of({"--model=softmax", "--batch-size=2", "--optimizer=sgd", "--cuda-graphs=off"}));
  EXPECT_DOUBLE_EQ(prediction.launch_seconds(), 5e-3);
  EXPECT_DOUBLE_EQ(prediction.least_seconds(), 5e-3) << "and not the sum: the GPU works meanwhile";
  EXPECT_THAT(device_prediction_text(prediction), HasSubstr("launches: 5 a step, at 1e+03 us each, take the host"));
}

TEST_F(SlowDevice, ComputesFasterAndMovesHalfTheBytesIn16Bits) {
  const Flags flags{"--model=mlp:784-1000-10", "--batch-size=500"};
  const DevicePrediction full = predicted(of(flags));
  Flags in_half = of(flags);
  in_half.push_back("--precision=fp16");
  const DevicePrediction half = predicted(in_half);
  EXPECT_DOUBLE_EQ(half.work.arena_bytes, full.work.arena_bytes) << "rounded weights take what gradients spare";
  EXPECT_DOUBLE_EQ(half.work.update.bytes, full.work.update.bytes + half.work.arena_bytes / 8) << "2 of 16 bytes";
  EXPECT_DOUBLE_EQ(half.step().flops, full.step().flops);
  EXPECT_LT(half.work.activation_bytes, full.work.activation_bytes);
  const auto &first = half.work.forward[1], &same = full.work.forward[0];  // behind the conversion of the batch
  EXPECT_DOUBLE_EQ(first.bytes, same.bytes / 2);
  EXPECT_DOUBLE_EQ(least_seconds(first, half.peak), least_seconds(same, full.peak) / 2);
}

TEST_F(SlowDevice, SaysWhereAModelDoesNotFit) {
  const std::string text = device_prediction_text(predicted(of({"--model=lenet", "--batch-size=64"})));
  EXPECT_THAT(text, HasSubstr("of the device's 10.00 MB, which is more than there is"));
  EXPECT_THAT(text, HasSubstr("Source: this test."));
}

TEST(DevicePrediction, NeedsTheMemoryThatARunAsksFor) {
  for (const char* const precision : {"--precision=fp32", "--precision=fp16"}) {
    for (const Flags& model : {Flags{"--model=lenet"}, Flags{"--model=gpt:2-2-32", "--context=16"}}) {
      Flags flags{"--device=t4", "--batch-size=8", precision};
      flags.insert(flags.end(), model.begin(), model.end());
      const DevicePrediction prediction = predicted(flags);
      const Result<worker::SampleForm> form = form_of_data(prediction.config);
      ASSERT_TRUE(form.ok());
      const Result<TrainingMemory> memory = training_memory(prediction.config, *form);
      ASSERT_TRUE(memory.ok());
      EXPECT_DOUBLE_EQ(prediction.work.memory_bytes(), static_cast<double>(memory->of(8))) << model[0] << precision;
    }
  }
}

TEST(DevicePrediction, TakesDataThatTheModelLearns) {
  EXPECT_EQ(predicted({"--device=t4", "--model=gpt", "--batch-size=2"}).config.dataset, "grammar");
  EXPECT_EQ(predicted({"--device=t4", "--model=resnet50", "--batch-size=2"}).config.dataset, "patterns");
  EXPECT_EQ(predicted({"--device=t4", "--model=resnet20", "--batch-size=2"}).config.dataset, "digits");
}

TEST(DevicePrediction, IsABoundAndSaysSoWithItsSources) {
  const DevicePrediction prediction = predicted({"--device=h100", "--model=resnet50", "--batch-size=32"});
  const std::string text = device_prediction_text(prediction);
  EXPECT_THAT(text, AllOf(HasSubstr("takes at least"), HasSubstr("at most"), HasSubstr("a bound and no prediction"),
                          HasSubstr("compute-bound"), HasSubstr("memory-bound"), HasSubstr("update"),
                          HasSubstr("measured by others: 39.6 ms"), HasSubstr("67 TFLOPS"), HasSubstr("NVIDIA, H100")));
  EXPECT_LT(prediction.least_seconds(), 39.6e-3) << "what was measured is no less than the bound";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
}

TEST(DevicePrediction, GrowsWithTheBatchAndShrinksWithAFasterDevice) {
  const auto seconds = [](const char* device, const char* batch) {
    return predicted({std::string("--device=") + device, "--model=resnet20", std::string("--batch-size=") + batch})
        .least_seconds();
  };
  EXPECT_GT(seconds("t4", "64"), seconds("t4", "32"));
  EXPECT_GT(seconds("t4", "64"), seconds("v100", "64"));
  EXPECT_GT(seconds("v100", "64"), seconds("h100", "64"));
}

TEST(DevicePrediction, RefusesWhatIsNoStepOfADevice) {
  EXPECT_EQ(refusal({"--device=t4", "--batch-size=4"}), "--model is missing beside --device, as in --model=resnet50");
  EXPECT_EQ(refusal({"--device=t4", "--model=mlp"}), "--batch-size is missing beside --device, as in --batch-size=64");
  EXPECT_EQ(refusal({"--device=t4", "--model=mlp", "--batch-size=4", "--precision=bf16"}),
            "--precision=bf16: t4 has no rate of bf16; there are fp32 and fp16");
  EXPECT_THAT(refusal({"--device=t4", "--model=mlp", "--batch-size=4", "--workers=4"}),
              HasSubstr("--workers: is of an exchange"));
  EXPECT_THAT(refusal({"--device=t4", "--model=profile:vgg16", "--batch-size=4"}), HasSubstr("name a model to train"));
  EXPECT_THAT(refusal({"--device=t4", "--model=lenett", "--batch-size=4"}), HasSubstr("did you mean lenet?"));
  EXPECT_THAT(refusal({"--device=t4", "--model=mlp", "--batch-size=4", "--context=8"}), HasSubstr("--context=8: has"));
  EXPECT_THAT(refusal({"--device=t4", "--model=mlp", "--batch-size=4", "--cuda-graphs=no"}),
              HasSubstr("--cuda-graphs=no: must be on or off"));
  EXPECT_THAT(refusal({"--device=t4", "--model=mlp", "--batch-size=0"}), HasSubstr("batch size must be 1 to"));
  EXPECT_THAT(refusal({"--device=h10", "--model=mlp", "--batch-size=4"}), HasSubstr("did you mean h100?"));
}

TEST(DevicePrediction, IsAnAnswerOfPredictAlone) {
  const Result<std::string> text = prediction_text({"predict", "--device", "t4", "--model=mlp", "--batch-size=4"});
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_THAT(*text, HasSubstr("on T4 16 GB a step takes at least"));
  EXPECT_THAT(prediction_text({"advise", "--device=t4", "--workers=2"}).status().message(),
              HasSubstr("--compute=a100"));
  EXPECT_THAT(prediction_text({"predict", "--profile=resnet50", "--workers=2", "--precision=bf16"}).status().message(),
              HasSubstr("--precision: has no effect on the forms of an exchange; it is of predict --device"));
}

TEST(DevicePrediction, HelpTellsOfIt) {
  const std::string help = *help_text("predict", 80);
  EXPECT_THAT(help, AllOf(HasSubstr("--device=NAME|FILE"), HasSubstr("h100, h200, a100"), HasSubstr("rtx4060-laptop"),
                          HasSubstr("--precision=KIND"), Not(HasSubstr("Where workers compute"))));
}

}  // namespace
}  // namespace syncopate::experiments
