// `why` of runs with --device=cuda. The software GPU's times are those of a program, and of no hardware: what is held
// here are which parts there are, and their sums.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::run_program;
using testing_support::TemporaryFolder;
using testing_support::operator+;
using Flags = std::vector<std::string>;

const Flags kTraining{"--model=lenet",     "--batch-size=8", "--steps=30",      "--train-samples=512",
                      "--test-samples=32", "--device=cuda",  "--warmup-steps=5"};

// A finished run, and what `why` makes of it.
class Explained {
 public:
  explicit Explained(const Flags& flags) : run_(kTraining + flags) {
    const ProgramEnd end = run_.wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
  }

  ProgramEnd why(const Flags& flags = {}) const { return run_program(Flags{"why", run_.output().string()} + flags); }
  nlohmann::json json(const Flags& flags = {}) const {
    const std::string file = folder_.path() / "why.json";
    const ProgramEnd end = why(flags + Flags{"--output=" + file});
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return nlohmann::json::parse(testing_support::text_of(file));
  }

 private:
  Program run_;
  const TemporaryFolder folder_;
};

double part_of(const nlohmann::json& why, const std::string& name) {
  for (const nlohmann::json& part : why["parts"]) {
    if (part["part"] == name) return part["ms"];
  }
  ADD_FAILURE() << "no part " << name;
  return 0;
}

void expect_that_it_adds_up(const nlohmann::json& why) {
  double sum = why["ideal_ms"];
  for (const nlohmann::json& part : why["parts"]) sum += part["ms"].get<double>();
  EXPECT_NEAR(sum, why["measured_ms"], 1e-6);
}

TEST(WhyOnAGpu, HasItsOwnPartsAndPhasesWhichAddUp) {
  const Explained run({"--mode=local"});
  const ProgramEnd text = run.why();
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("a software GPU (GPU 0, 8 GiB), the mean of all workers' steps"),
                              HasSubstr("by its clock"), HasSubstr("update"), HasSubstr("as one CUDA graph"),
                              HasSubstr("compared with no data sheet"), Not(HasSubstr("oversubscribed"))));
  const nlohmann::json why = run.json();
  expect_that_it_adds_up(why);
  EXPECT_EQ(part_of(why, "copies"), 0) << "nothing is exchanged";
  EXPECT_GE(part_of(why, "launches"), 0);
  EXPECT_GE(part_of(why, "idle GPU"), 0);
  EXPECT_EQ(why["device"]["name"], "a software GPU (GPU 0, 8 GiB)");
  EXPECT_TRUE(why["device"]["rates_of"].is_null());
  for (const char* const phase : {"forward", "backward", "update"}) {
    EXPECT_GT(why["device"][phase]["ms"], 0) << phase;
    EXPECT_FALSE(why["device"][phase].contains("least_ms")) << phase;
  }
  EXPECT_GT(why["device"]["launch_ms"], 0);
}

TEST(WhyOnAGpu, HoldsPhasesAgainstADeviceThatIsNamed) {
  const Explained run({"--mode=local", "--cuda-graphs=off"});
  const ProgramEnd text = run.why({"--device=t4"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("compute-bound"), HasSubstr("memory-bound"), HasSubstr("reached"),
                              HasSubstr("peak rates of T4 16 GB in fp32"), HasSubstr("call by call")));
  const nlohmann::json device = run.json({"--device=t4"})["device"];
  EXPECT_EQ(device["rates_of"], "t4");
  for (const char* const phase : {"forward", "backward", "update"}) {
    const double least = device[phase]["least_ms"];
    EXPECT_GT(least, 0) << phase;
    EXPECT_NEAR(device[phase]["compute_bound_ms"].get<double>() + device[phase]["memory_bound_ms"].get<double>(), least,
                1e-9);
  }
  EXPECT_THAT(run.why({"--device=t5000"}).err, HasSubstr("--device=t5000: must be h100, "));
}

TEST(WhyOnAGpu, HasCopiesWhereGradientsGoThroughTheHost) {
  const Explained run({"--mode=ps", "--workers=2", "--consistency=sync", "--share-gpu"});
  const nlohmann::json why = run.json();
  expect_that_it_adds_up(why);
  EXPECT_GT(part_of(why, "copies"), 0);
  EXPECT_GT(why["device"]["copy_ms"], 0);
  EXPECT_FALSE(why["device"].contains("update")) << "servers update";
}

TEST(WhyOnAGpu, IsRefusedADeviceForARunOnProcessors) {
  Program run(Flags{"--mode=local", "--device=cpu", "--steps=4", "--train-samples=64", "--test-samples=16"});
  ASSERT_EQ(run.wait().exit_code, 0);
  EXPECT_THAT(run_program({"why", run.output().string(), "--device=t4"}).err, HasSubstr("computed on processors"));
}

}  // namespace
}  // namespace syncopate::experiments
