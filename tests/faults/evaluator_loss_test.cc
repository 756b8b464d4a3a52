// A run that loses its evaluator goes on, and its evaluations are made up for.
#include "tests/faults/failing_run.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;

struct Trained {
  const char* name;
  Flags mode;
};

void PrintTo(const Trained& trained, std::ostream* out) { *out << trained.name; }

// So that training lasts for seconds after the first steps are on the disk.
constexpr const char* kSlowly = "--straggler=all:+0.3";

class LossOfTheEvaluator : public testing::TestWithParam<Trained> {
 protected:
  // Starts the run, and sends `signal` to the evaluator once all workers train.
  void lose_by(int signal) {
    program_.emplace(training(GetParam().mode, fmt::format("--epochs={}", kEpochs)) + Flags{kSlowly});
    victim_ = program_->process("evaluator", 0);
    ASSERT_NE(victim_, 0);
    ASSERT_TRUE(program_->wait_until_training(1));
    kill(victim_, signal);
  }
  void expect_all_evaluated(const std::string& how) {
    const ProgramEnd end = program_->wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
    EXPECT_THAT(end.err, HasSubstr(how));
    EXPECT_THAT(end.err, HasSubstr("it is started again"));
    EXPECT_THAT(end.err, HasSubstr("evaluator is back (pid "));
    EXPECT_EQ(testing_support::lines_of(testing_support::text_of(program_->output() / "evals.csv")).size(),
              1u + kEpochs);
    EXPECT_FALSE(program_->summary().contains("not_evaluated"));
    EXPECT_TRUE(program_->summary()["final_test_accuracy"].is_number());
    EXPECT_THAT(program_->weights(), testing::SizeIs(kParameters));
    EXPECT_THAT(program_->processes(), testing::IsEmpty());
  }

  static constexpr int kEpochs = 30;
  std::optional<Program> program_;

 private:
  pid_t victim_ = 0;
};

INSTANTIATE_TEST_SUITE_P(
    Under, LossOfTheEvaluator,
    testing::Values(Trained{"Local", {"--mode=local"}}, Trained{"Ring", {"--mode=allreduce", "--workers=2"}},
                    Trained{"PsUnderMpirun", {"--mode=ps", "--workers=1", "--servers=1", "--launcher=mpirun"}}),
    [](const auto& trained) { return trained.param.name; });

TEST_P(LossOfTheEvaluator, ByKillCostsNoEvaluation) {
  ASSERT_NO_FATAL_FAILURE(lose_by(SIGKILL));
  expect_all_evaluated("was killed by signal 9 (Killed)");
}

TEST_P(LossOfTheEvaluator, BySilenceCostsNoEvaluation) {
  ASSERT_NO_FATAL_FAILURE(lose_by(SIGSTOP));
  expect_all_evaluated("has stopped answering");
}

TEST(LossOfTheEvaluatorForGood, EndsWellAndSaysWhatIsMissing) {
  Program program(training({"--mode=local", "--target-accuracy=0.999999"}, "--epochs=40"));
  pid_t last = 0;
  // Each one that comes is killed as it comes.
  ASSERT_TRUE(program.wait_until("it is given up", [&] {
    for (const testing_support::RunningProcess& process : program.processes()) {
      if (process.has("--role=evaluator") && process.pid != last) kill(last = process.pid, SIGKILL);
    }
    return program.errors().find("nothing is evaluated any more") != std::string::npos;
  }));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, HasSubstr("and --target-accuracy cannot be judged\n"));
  EXPECT_THAT(end.err, testing::ContainsRegex("not evaluated: [0-9]+ snapshots and the final weights\n"));
  EXPECT_THAT(end.out, HasSubstr("not evaluated"));
  EXPECT_THAT(program.summary().value("not_evaluated", ""), HasSubstr("and the final weights"));
  EXPECT_TRUE(program.summary()["final_test_accuracy"].is_null());
  EXPECT_THAT(program.weights(), testing::SizeIs(kParameters));
}

}  // namespace
}  // namespace syncopate::experiments
