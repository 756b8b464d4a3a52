// profile and calibrate, as a person runs them, and what is done with their files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/run_program.h"

namespace syncopate::testing_support {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Flags = std::vector<std::string>;

class AMeasuredCluster : public testing::Test {
 protected:
  ProgramEnd run(const Flags& words) { return run_program(words); }

  const TemporaryFolder folder_;
  const std::string cluster_ = folder_.path() / "cluster.toml";
  const std::string profile_ = folder_.path() / "cluster.json";
  const Flags small_{"--model=mlp:784-32-10", "--batch-size=32", "--train-samples=2048", "--test-samples=256",
                     "--data-dir=" + shared_data_dir()};
};

TEST_F(AMeasuredCluster, RunsAlikeAtEveryCall) {
  const ProgramEnd calibrated = run(Flags{"calibrate", "--output=" + cluster_} + small_);
  ASSERT_EQ(calibrated.exit_code, 0) << calibrated.err;
  EXPECT_THAT(calibrated.out, AllOf(HasSubstr("dense1.weight"), HasSubstr("sockets"), HasSubstr("update by adam"),
                                    HasSubstr("--cluster=simulated:" + cluster_)));
  const Flags flags = Flags{"--cluster=simulated:" + cluster_,
                            "--mode=ps",
                            "--workers=4",
                            "--servers=2",
                            "--steps=12",
                            "--compress=int8"} +
                      small_;
  Program first(flags), second(flags);
  ASSERT_EQ(first.wait().exit_code, 0) << first.errors();
  ASSERT_EQ(second.wait().exit_code, 0) << second.errors();
  EXPECT_FALSE(first.steps_csv().empty());
  EXPECT_EQ(first.steps_csv(), second.steps_csv()) << "nothing is measured anew";
  const nlohmann::json simulated = first.summary()["simulated"];
  EXPECT_EQ(simulated["cluster"], cluster_);
  EXPECT_THAT(simulated["compute"].get<std::string>(), HasSubstr("by the profile " + profile_));
  EXPECT_THAT(simulated["processing"].get<std::string>(), AllOf(HasSubstr("update"), HasSubstr("encode")));
  EXPECT_EQ(simulated["without_time"], "evaluation, reading data");
}

TEST_F(AMeasuredCluster, IsWrittenOnceAlone) {
  const Flags words = Flags{"profile", "--output=" + profile_} + small_;
  ASSERT_EQ(run(words).exit_code, 0);
  const std::string before = text_of(profile_);
  const ProgramEnd again = run(words);
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr("is there already"));
  EXPECT_EQ(text_of(profile_), before);
  EXPECT_EQ(run(Flags{"calibrate", "--output=" + cluster_} + small_).exit_code, 2) << "its profile is in the way";
  EXPECT_EQ(text_of(cluster_), "");
}

// The one that calibrate names: its local row, and the proof before it, have batches of other sizes.
TEST_F(AMeasuredCluster, CanBeComparedOn) {
  ASSERT_EQ(run(Flags{"calibrate", "--output=" + cluster_} + small_).exit_code, 0);
  Program program(Flags{"compare", "--cluster=simulated:" + cluster_, "--workers=2", "--modes=local,allreduce,ps:sync",
                        "--steps=12", "--repeat=1"} +
                  small_);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  const auto computing = [&](const char* row) {
    const std::string summary = text_of(program.output() / row / "summary.json");
    return nlohmann::json::parse(summary)["simulated"]["compute"].get<std::string>();
  };
  EXPECT_THAT(computing("local-1"), HasSubstr("in proportion from batches of 32 to 64"));
  EXPECT_THAT(computing("allreduce-1"), testing::Not(HasSubstr("in proportion")));
  const auto computes_for = [&](const char* row) {
    const auto split = nlohmann::json::parse(text_of(program.output() / row / "summary.json"))["step_split_ms"];
    return split["forward"].get<double>() + split["backward"].get<double>();
  };
  EXPECT_NEAR(computes_for("local-1") / computes_for("allreduce-1"), 2, 0.02);
}

// The same file stands for the model's computing, for the model, and for a prediction.
TEST_F(AMeasuredCluster, HasAProfileForAllThatTakesOne) {
  ASSERT_EQ(run(Flags{"profile", "--output=" + profile_} + small_).exit_code, 0);
  const Flags job{"--cluster=simulated", "--mode=allreduce", "--workers=2",
                  "--steps=8",           "--warmup-steps=2", "--overlap=off"};
  Program real(job + small_ + Flags{"--compute=" + profile_});
  Program phantom(job + Flags{"--model=profile:" + profile_, "--batch-size=32"});
  ASSERT_EQ(real.wait().exit_code, 0) << real.errors();
  ASSERT_EQ(phantom.wait().exit_code, 0) << phantom.errors();
  const auto computing = [](const nlohmann::json& summary) {
    const nlohmann::json& split = summary["step_split_ms"];
    return split["forward"].get<double>() + split["backward"].get<double>();
  };
  EXPECT_NEAR(computing(real.summary()), computing(phantom.summary()), 0.01 * computing(real.summary()));
  const ProgramEnd predicted = run({"predict", "--profile=" + profile_, "--workers=2", "--shape=10gbit+50us"});
  EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
  EXPECT_THAT(predicted.out, HasSubstr("32 samples"));
}

TEST_F(AMeasuredCluster, IsOfOneModel) {
  ASSERT_EQ(run(Flags{"profile", "--output=" + profile_} + small_).exit_code, 0);
  const auto refusal = [&](const Flags& more) {
    const ProgramEnd end = run(Flags{"--cluster=simulated", "--mode=allreduce", "--compute=" + profile_} + more);
    EXPECT_EQ(end.exit_code, 2);
    return end.err;
  };
  EXPECT_THAT(refusal({"--model=lenet", "--batch-size=32"}), HasSubstr("its times are of mlp:784-32-10"));
  EXPECT_THAT(refusal({"--model=mlp", "--compute=profile"}), HasSubstr("once is enough"));
  // Somebody has edited the file.
  std::string text = text_of(profile_);
  text.replace(text.find("[32,784]"), 8, "[31,784]");
  std::ofstream(profile_) << text;
  EXPECT_THAT(refusal({"--model=mlp:784-32-10", "--batch-size=32", "--steps=12", "--data-dir=" + shared_data_dir()}),
              HasSubstr("other tensors"));
}

}  // namespace
}  // namespace syncopate::testing_support
