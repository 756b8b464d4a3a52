// What a run has left, evaluated afterwards: the figures are those of the run itself.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/text/number.h"
#include "experiments/checkpoint/checkpoint_store.h"
#include "experiments/lab/evaluate/evaluate_line.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing_support::lines_of;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::run_program;
using testing_support::shared_data_dir;
using testing_support::TemporaryFolder;
using testing_support::text_of;
using testing_support::operator+;

using Flags = std::vector<std::string>;

const Flags kJob{"--batch-size=32", "--train-samples=2000", "--test-samples=300", "--steps=40"};
const Flags kSmallJob = kJob + Flags{"--model=mlp:784-64-10"};

GivenOptions beside(GivenOptions more = {}) {
  more["data-dir"] = shared_data_dir();
  return more;
}

// The figures that the program has recorded of its final evaluation.
void expect_as_recorded(const Program& program, const Evaluation::Score& score) {
  const nlohmann::json summary = program.summary();
  EXPECT_EQ(score.loss, summary["final_test_loss"].get<double>());
  EXPECT_EQ(score.accuracy, summary["final_test_accuracy"].get<double>());
}

void expect_evaluated_as_recorded(const Flags& flags) {
  SCOPED_TRACE(fmt::format("{}", fmt::join(flags, " ")));
  Program program(flags);
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const Result<EvaluatedModel> model = evaluate({.path = program.output(), .options = beside()});
  ASSERT_TRUE(model.ok()) << model.status().message();
  expect_as_recorded(program, model->score);
}

TEST(Evaluate, SaysOfEveryKindOfModelBitByBitWhatTheRunHasSaid) {
  expect_evaluated_as_recorded(kSmallJob + Flags{"--mode=allreduce", "--workers=2"});
  expect_evaluated_as_recorded(kSmallJob + Flags{"--mode=ps", "--servers=2", "--pixel-scale=unit", "--init=glorot"});
  expect_evaluated_as_recorded(kJob + Flags{"--model=conv:4-16"});
  expect_evaluated_as_recorded({"--model=resnet20", "--batch-size=4", "--train-samples=200", "--test-samples=100",
                                "--steps=12", "--mode=allreduce", "--workers=2"});
  expect_evaluated_as_recorded({"--model=gpt:1-2-32", "--dataset=grammar", "--context=16", "--batch-size=8",
                                "--train-samples=400", "--test-samples=100", "--steps=12"});
  expect_evaluated_as_recorded({"--model=ncf", "--dataset=zipf-ratings", "--table-rows=500", "--batch-size=32",
                                "--train-samples=2000", "--test-samples=200", "--steps=20"});
}

TEST(Evaluate, KnowsAFileByItsMetadataAlone) {
  Program program(kSmallJob + Flags{"--pixel-scale=unit"});
  ASSERT_EQ(program.wait().exit_code, 0);
  const TemporaryFolder elsewhere;
  const fs::path file = elsewhere.path() / "digits.safetensors";
  fs::copy_file(program.output() / "model.safetensors", file);
  const Result<EvaluatedModel> model = evaluate({.path = file, .options = beside()});
  ASSERT_TRUE(model.ok()) << model.status().message();
  expect_as_recorded(program, model->score);
  const Result<EvaluatedModel> otherwise = evaluate({.path = file, .options = beside({{"pixel-scale", "shifted"}})});
  ASSERT_TRUE(otherwise.ok()) << otherwise.status().message();
  EXPECT_NE(otherwise->score.loss, model->score.loss) << "pixels are scaled as told";
}

// The last checkpoint is of the final weights.
TEST(Evaluate, TakesACheckpoint) {
  for (const char* model : {"--model=mlp:784-64-10", "--model=resnet20"}) {
    Program program({model, "--batch-size=8", "--train-samples=200", "--test-samples=100", "--steps=20",
                     "--checkpoint-every=10", "--mode=allreduce", "--workers=2"});
    ASSERT_EQ(program.wait().exit_code, 0);
    const CheckpointStore store((program.output() / "checkpoints").string());
    ASSERT_EQ(store.steps().front(), 20);
    for (const std::string& path :
         {store.path_of(20), store.path_of(20) + "/", store.path_of(20) + "/weights.safetensors"}) {
      const Result<EvaluatedModel> evaluated = evaluate({.path = path, .options = beside()});
      ASSERT_TRUE(evaluated.ok()) << evaluated.status().message();
      expect_as_recorded(program, evaluated->score);
    }
    const Result<EvaluatedModel> before = evaluate({.path = store.path_of(10), .options = beside()});
    ASSERT_TRUE(before.ok()) << before.status().message();
    EXPECT_NE(before->score.loss, program.summary()["final_test_loss"].get<double>());
  }
}

TEST(Evaluate, PrintsTheFiguresInFullAndWritesWhatEachImageIsTakenFor) {
  Program program(kSmallJob);
  ASSERT_EQ(program.wait().exit_code, 0);
  const TemporaryFolder folder;
  const std::string file = folder.path() / "predictions.csv";
  const ProgramEnd end =
      run_program({"evaluate", program.output(), "--predictions=" + file, "--data-dir=" + shared_data_dir()});
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const nlohmann::json summary = program.summary();
  EXPECT_THAT(end.out, HasSubstr("model.safetensors: mlp:784-64-10 on digits"));
  EXPECT_THAT(end.out, HasSubstr(fmt::format("test loss       {}\n", summary["final_test_loss"].get<double>())));
  EXPECT_THAT(end.out, HasSubstr(fmt::format("test accuracy   {}\n", summary["final_test_accuracy"].get<double>())));
  const std::vector<std::string> lines = lines_of(text_of(file));
  ASSERT_EQ(lines.size(), 301u);
  EXPECT_EQ(lines[0], "index,label,predicted,probability");
  int right = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string& line = lines[static_cast<std::size_t>(i) + 1];
    ASSERT_THAT(line, MatchesRegex(fmt::format("{},[0-9],[0-9],[01]\\.[0-9]+", i)));
    const std::size_t label = line.find(',') + 1;
    right += line[label] == line[label + 2] ? 1 : 0;
  }
  EXPECT_DOUBLE_EQ(right / 300.0, summary["final_test_accuracy"].get<double>());
}

std::string evaluate_refusal(const Flags& flags) {
  const ProgramEnd end = run_program(Flags{"evaluate"} + flags);
  EXPECT_NE(end.exit_code, 0) << end.out;
  EXPECT_EQ(lines_of(end.err).size(), 1u) << end.err;
  return end.err;
}

TEST(Evaluate, SaysInOneLineWhatDoesNotFit) {
  Program program(kSmallJob + Flags{"--checkpoint-every=20"});
  ASSERT_EQ(program.wait().exit_code, 0);
  const std::string data = "--data-dir=" + shared_data_dir(), run = program.output();
  EXPECT_THAT(evaluate_refusal({}), HasSubstr("needs the results of one run"));
  EXPECT_THAT(evaluate_refusal({run, run}), HasSubstr("2 were given"));
  EXPECT_THAT(evaluate_refusal({run, "--epochs=3"}), HasSubstr("no such option"));
  EXPECT_THAT(evaluate_refusal({run, data, "--model=mlp:784-32-10"}),
              HasSubstr("tensor 'dense1.weight' is 64x784 there, and 32x784 in the model"));
  EXPECT_THAT(evaluate_refusal({run, data, "--model=mlp:784-64-32-10"}),
              HasSubstr("tensor 'dense2.weight' is 10x64 there, and 32x64 in the model"));
  EXPECT_THAT(evaluate_refusal({run, data, "--model=softmax"}),
              HasSubstr("tensor 'dense1.weight' is 64x784 there, and 10x784 in the model"));
  EXPECT_THAT(evaluate_refusal({run + "/checkpoints/step-000040", data, "--model=mlp:784-32-10"}),
              HasSubstr("tensor 'dense1.weight' is 64x784 there, and 32x784 in the model"));
  EXPECT_THAT(evaluate_refusal({run, data, "--model=perceptron"}), HasSubstr("unknown model"));
  EXPECT_THAT(evaluate_refusal({run, data, "--dataset=letters"}), HasSubstr("--dataset=letters: data set must be"));
  EXPECT_THAT(evaluate_refusal({run, data, "--dataset=minst"}), HasSubstr("; did you mean mnist?"));
  EXPECT_THAT(evaluate_refusal({run, data, "--context=9"}), HasSubstr("has an effect only with"));
  EXPECT_THAT(evaluate_refusal({run + "/nothing", data}), HasSubstr("nothing"));
  EXPECT_THAT(evaluate_refusal({run + "/checkpoints", data}), HasSubstr("has no model.safetensors"));
  fs::remove(fs::path(run) / "model.safetensors");
  EXPECT_THAT(evaluate_refusal({run, data}), HasSubstr("its newest checkpoint is " + run + "/checkpoints/step-000040"));
}

TEST(Evaluate, RefusesWhatIsTruncatedOrSaysNothingOfItself) {
  Program program(kSmallJob + Flags{"--checkpoint-every=20"});
  ASSERT_EQ(program.wait().exit_code, 0);
  const std::string data = "--data-dir=" + shared_data_dir();
  const fs::path file = program.output() / "model.safetensors",
                 weights = program.output() / "checkpoints/step-000040/weights.safetensors";
  fs::resize_file(file, fs::file_size(file) - 100);
  EXPECT_THAT(evaluate_refusal({program.output(), data}), HasSubstr("model.safetensors: "));
  const TemporaryFolder elsewhere;
  const fs::path alone = elsewhere.path() / "alone.safetensors";
  fs::copy_file(weights, alone);
  EXPECT_THAT(evaluate_refusal({alone, data}), AllOf(HasSubstr("alone.safetensors"), HasSubstr("give --model=NAME")));
  EXPECT_THAT(evaluate_refusal({alone, data, "--model=mlp:784-64-10"}), HasSubstr("give --dataset=NAME"));
  const Result<EvaluatedModel> told = evaluate(
      {.path = alone,
       .options = beside(
           {{"model", "mlp:784-64-10"}, {"dataset", "digits"}, {"train-samples", "2000"}, {"test-samples", "300"}})});
  ASSERT_TRUE(told.ok()) << told.status().message();
  expect_as_recorded(program, told->score);
  fs::resize_file(weights, fs::file_size(weights) - 100);
  EXPECT_THAT(evaluate_refusal({weights, data}), HasSubstr("weights.safetensors"));
}

TEST(Evaluate, IsWhatPredictLeadsTo) {
  const ProgramEnd end = run_program({"predict", "model.safetensors"});
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, HasSubstr("evaluate model.safetensors --predictions=FILE.csv"));
}

}  // namespace
}  // namespace syncopate::experiments
