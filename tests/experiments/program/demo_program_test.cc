// Demonstrations as a person uses them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "experiments/cluster/exit_code.h"
#include "tests/experiments/lab/demo/small_demo.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::TemporaryFolder;
using testing_support::text_of;

ProgramEnd ended(const std::vector<std::string>& flags) { return Program(flags).wait(); }

TEST(DemoProgram, AsksRunsDrawsAnswersAndChecks) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "small.toml", output = folder.path() / "results";
  std::ofstream(file) << kSmallDemo;
  const ProgramEnd run = ended({"demo", file, "--output=" + output});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_LT(run.out.find("How much faster is it with two servers?"), run.out.find("round 1/1"));
  EXPECT_THAT(run.out, AllOf(HasSubstr("Throughput over servers"), HasSubstr("They help."), HasSubstr("(growth = ...)"),
                             HasSubstr("the page: " + output + "/demo.html"), Not(HasSubstr("\x1b["))));
  EXPECT_THAT(run.out, Not(HasSubstr("A/A noise"))) << "tables are in the comparison's files";
  EXPECT_THAT(text_of(output + "/demo.html"), HasSubstr("They help."));
  const double growth = nlohmann::json::parse(text_of(output + "/demo.json"))["figures"]["growth"];
  EXPECT_GT(growth, 1.1) << "two servers of a full link";

  const std::string answers = folder.path() / "answer.toml";
  std::ofstream(answers) << "growth = " << growth << "\nservers = 2\nmode = \"ps:sync\"\n";
  const ProgramEnd right = ended({"demo", file, "--check", answers, "--output=" + output});
  EXPECT_EQ(right.exit_code, 0) << right.err;
  EXPECT_THAT(right.out, HasSubstr("3 of 3 are right"));
  std::ofstream(answers) << "growth = " << 2 * growth << "\nservers = 2\nmode = \"ps:sync\"\n";
  const ProgramEnd wrong = ended({"demo", file, "--check=" + answers, "--output=" + output});
  EXPECT_EQ(wrong.exit_code, static_cast<int>(ExitCode::kUnequal));
  EXPECT_THAT(wrong.out, AllOf(HasSubstr("not right. Divide."), HasSubstr("2 of 3 are right")));

  const ProgramEnd again = ended({"demo", file, "--output=" + output});
  EXPECT_EQ(again.exit_code, static_cast<int>(ExitCode::kUsage)) << "figures of two runs do not mix";
  EXPECT_THAT(again.err, HasSubstr("holds files already"));
}

TEST(DemoProgram, GoesOnWhereARunEndsByItsFault) {
  const TemporaryFolder folder;
  const std::string file = folder.path() / "lost.toml", output = folder.path() / "results";
  std::string text;
  for (const std::string& line : lines_of_small_demo()) {
    if (line.starts_with("why.") || line.starts_with("say.3")) continue;
    text += line + "\n";
  }
  text +=
      "run.lost = \"--cluster=simulated --mode=allreduce --collective=ring --workers=3 --compute=5ms --steps=20 "
      "--fault=kill:worker1@step5 --model=softmax --train-samples=2000 --test-samples=100\"\n"
      "say.4.if = \"[lost/outcome] == 'completed'\"\nsay.4.then = \"It went on.\"\nsay.4.else = \"Ended.\"\n";
  std::ofstream(file) << text;
  const ProgramEnd run = ended({"demo", file, "--output=" + output});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Ended."));
}

TEST(DemoProgram, ListsAndNamesWhatItCannotDo) {
  const ProgramEnd list = ended({"demo"});
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_THAT(list.out,
              AllOf(HasSubstr("straggler  (simulated cluster, about "), HasSubstr("death  (real processes, ")));
  const auto refusal = [](const std::vector<std::string>& flags) {
    const ProgramEnd end = ended(flags);
    EXPECT_EQ(end.exit_code, static_cast<int>(ExitCode::kUsage));
    return end.err;
  };
  EXPECT_THAT(refusal({"demo", "stragler"}), HasSubstr("did you mean straggler?"));
  const TemporaryFolder folder;
  EXPECT_THAT(refusal({"demo", "straggler", "--check=none.toml", "--output=" + folder.path().string()}),
              HasSubstr("has no results of demo straggler"));
}

TEST(DemoProgram, DrawsThePlotsOfARunAndOfAStudy) {
  const ProgramEnd run = ended({"--cluster=simulated", "--compute=5ms", "--workers=2", "--mode=allreduce", "--epochs=2",
                                "--model=softmax", "--train-samples=2000", "--test-samples=200", "--plot"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("\naccuracy on the test set\n"), HasSubstr("\nLoss on the test set\n")));
  const ProgramEnd study =
      ended({"study", "--cluster=simulated", "--model=profile:resnet50", "--compute=292ms", "--steps=2",
             "--warmup-steps=1", "--network=fifo", "--modes=allreduce:ring", "--vary=workers=1,2", "--plot"});
  EXPECT_EQ(study.exit_code, 0) << study.err;
  EXPECT_THAT(study.out, HasSubstr("samples/s of the whole job over workers\n"));
  EXPECT_EQ(ended({"profile", "--plot"}).exit_code, static_cast<int>(ExitCode::kUsage));
}

}  // namespace
}  // namespace syncopate::experiments
