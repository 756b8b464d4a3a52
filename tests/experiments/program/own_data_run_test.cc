// Runs that learn from a person's own files, in every mode.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/random.h"
#include "experiments/lab/evaluate/evaluate_line.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::lines_of;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::TemporaryFolder;
using testing_support::text_of;
using testing_support::operator+;

using Flags = std::vector<std::string>;

double uniform(Random& random) { return static_cast<double>(random.below(1000)) / 500 - 1; }

class OwnDataRun : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = folder_.path() / name;
    std::ofstream(path) << text;
    return path;
  }
  // 12 classes, around as many points: more than the built-in sets have.
  std::string classes() {
    Random random(1, 1);
    std::string text = "\xEF\xBB\xBFx,y,kind\r\n";
    for (int i = 0; i < 600; ++i) {
      const int kind = i % 12;
      text += fmt::format("{},{},\"kind {}\"\r\n", 10 * (kind % 4) + uniform(random), 10 * (kind / 4) + uniform(random),
                          kind);
    }
    return write("kinds.csv", text + "\r\n");
  }
  std::string numbers() {
    Random random(1, 2);
    std::string text = "a,b,price\n";
    for (int i = 0; i < 600; ++i) {
      const double a = uniform(random), b = uniform(random);
      text += fmt::format("{},{},{}\n", a, b, 1000 + 300 * a - 100 * b + 5 * uniform(random));
    }
    return write("prices.csv", text);
  }

  TemporaryFolder folder_;
};

const Flags kOwnSteps{"--model=mlp", "--batch-size=16", "--learning-rate=0.01", "--workers=2"};
const Flags kOwnModel = kOwnSteps + Flags{"--epochs=8"};

TEST_F(OwnDataRun, LearnsMoreThanTenClassesInEveryModeAndIsEvaluatedAlike) {
  const std::string path = classes();
  for (const Flags& mode : {Flags{"--mode=allreduce"}, Flags{"--mode=ps", "--consistency=sync"}, Flags{"--mode=ps"}}) {
    Program program(kOwnModel + mode + Flags{"--dataset=" + path});
    const ProgramEnd end = program.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    const nlohmann::json summary = program.summary();
    EXPECT_GT(summary["final_test_accuracy"].get<double>(), 0.95);
    EXPECT_THAT(summary["data"].get<std::string>(),
                HasSubstr("480 samples to train, 120 to test; 2 values a sample; 12 classes: kind 0, kind 1, kind 10"));
    const std::string predictions = folder_.path() / "predictions.csv";
    const Result<EvaluatedModel> model =
        evaluate({.path = program.output(), .options = {}, .predictions = predictions});
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(model->score.accuracy, summary["final_test_accuracy"].get<double>());
    EXPECT_THAT(lines_of(text_of(predictions))[1], HasSubstr("\"kind "));
  }
}

TEST_F(OwnDataRun, LearnsNumbersAndSaysR2AndNoAccuracy) {
  const std::string path = numbers();
  for (const Flags& mode : {Flags{"--mode=allreduce", "--validation=0.1"}, Flags{"--mode=ps", "--consistency=sync"}}) {
    Program program(kOwnModel + mode + Flags{"--dataset=" + path});
    const ProgramEnd end = program.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    EXPECT_THAT(end.out, AllOf(HasSubstr("R2 0.9"), HasSubstr("mean squared error"), Not(HasSubstr("accuracy"))));
    const nlohmann::json summary = program.summary();
    EXPECT_TRUE(summary["final_test_accuracy"].is_null());
    EXPECT_TRUE(summary["final_validation_accuracy"].is_null());
    EXPECT_GT(summary["final_test_r2"].get<double>(), 0.95);
    EXPECT_LT(summary["final_test_rmse"].get<double>(), 50);
    for (const char* file : {"evals.csv", "steps.csv"}) {
      for (const std::string& cell : program.column(file, "accuracy")) EXPECT_EQ(cell, "");
    }
    const std::string predictions = folder_.path() / "predictions.csv";
    const Result<EvaluatedModel> model =
        evaluate({.path = program.output(), .options = {}, .predictions = predictions});
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(model->score.figures.r2, summary["final_test_r2"].get<double>());
    EXPECT_EQ(lines_of(text_of(predictions))[0], "index,target,predicted");
  }
}

TEST_F(OwnDataRun, ComesToTheSameWeightsWhereModesDoAndGoesOn) {
  const std::string path = numbers();
  const Flags flags = kOwnSteps + Flags{"--dataset=" + path, "--optimizer=sgd", "--steps=60"};
  Program allreduce(flags + Flags{"--mode=allreduce"}),
      sync(flags + Flags{"--mode=ps", "--consistency=sync", "--checkpoint-every=20"});
  EXPECT_EQ(allreduce.wait().exit_code, 0);
  EXPECT_EQ(sync.wait().exit_code, 0);
  EXPECT_EQ(allreduce.weights(), sync.weights());
  Program other(flags +
                Flags{"--mode=ps", "--consistency=sync", "--normalise=none", "--resume=" + sync.output().string()});
  const ProgramEnd end = other.wait();
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, HasSubstr("--normalise is standard there and none here"));
}

TEST_F(OwnDataRun, GoesOnWithTheSameSamplesAlone) {
  const std::string path = numbers();
  const Flags flags{"--model=mlp", "--batch-size=16", "--dataset=" + path};
  Program before(flags + Flags{"--steps=40", "--checkpoint-every=20"});
  EXPECT_EQ(before.wait().exit_code, 0);
  const std::string resume = "--resume=" + before.output().string();
  Program longer(flags + Flags{"--steps=60", resume});
  EXPECT_EQ(longer.wait().exit_code, 0) << longer.errors();
  std::ofstream(path, std::ios::app) << "0.5,0.5,1100.5\n";
  Program other(flags + Flags{"--steps=60", resume});
  EXPECT_EQ(other.wait().exit_code, 2);
  EXPECT_THAT(other.errors(), HasSubstr("what the data holds is "));
}

TEST_F(OwnDataRun, EndsWithTheFileAndThePlaceWhereItIsWrong) {
  const Flags job = kOwnModel + Flags{"--mode=allreduce"};
  Program wrong(job + Flags{"--dataset=" + write("wrong.csv", "a,kind\n1,x\nten,y\n")});
  const ProgramEnd end = wrong.wait();
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_THAT(end.err, HasSubstr("wrong.csv: line 3: column 'a' is 'ten', expected a finite number"));
  Program unknown(job + Flags{"--dataset=table.xls"});
  EXPECT_EQ(unknown.wait().exit_code, 2);
  EXPECT_THAT(unknown.errors(), HasSubstr("*.csv, *.tsv, *.npy, *.npz"));
  Program idle(job + Flags{"--dataset=digits", "--target=kind"});
  EXPECT_EQ(idle.wait().exit_code, 2);
  EXPECT_THAT(idle.errors(), HasSubstr("--target=kind: has an effect only with --dataset=PATH"));
}

}  // namespace
}  // namespace syncopate::experiments
