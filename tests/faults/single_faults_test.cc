// One fault each: what becomes of the run, exactly.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <optional>

#include "tests/support/faulty_run.h"

namespace syncopate::faults {
namespace {

using experiments::ExitCode;
using testing::MatchesRegex;
using testing_support::operator+;

const Mode kPsAsync{"PsAsync", {"--mode=ps", "--workers=3", "--servers=2", "--consistency=async"}};
const Mode kPsSync{"PsSync", {"--mode=ps", "--workers=3", "--servers=2", "--consistency=sync"}};
const Mode kPsBounded{"PsBounded", {"--mode=ps", "--workers=3", "--servers=2", "--consistency=bounded:4"}};
const Mode kRing{"Ring", {"--mode=allreduce", "--workers=3", "--collective=ring"}};
const Flags kInVirtualTime{"--cluster=simulated", "--compute=1ms"};
const Mode kDirect{"Direct", {"--mode=allreduce", "--workers=3"}};

// The steps of each worker that were recorded, by rank.
std::map<int, int> recorded_steps(const Program& program) {
  std::map<int, int> steps;
  const std::vector<std::string> lines = testing_support::lines_of(program.steps_csv());
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::string of_worker = lines[i].substr(lines[i].find(',') + 1);
    ++steps[std::stoi(of_worker)];
  }
  return steps;
}

// 0 where nobody went on.
double seconds_to_all_steps(const nlohmann::json& fault) {
  const nlohmann::json seconds = fault.value("seconds_to_all_steps", nlohmann::json());
  return seconds.is_number() ? seconds.get<double>() : 0;
}

class SingleFault : public testing::TestWithParam<Mode> {
 protected:
  // Runs it with the fault. What became of that.
  nlohmann::json run_with(const std::string& fault, int steps = 400, int timeout_seconds = kTimeoutSeconds) {
    Flags flags = small_run(GetParam().flags, steps, timeout_seconds);
    flags.push_back("--fault=" + fault);
    const Remains remains;
    program_.emplace(flags);
    end_ = program_->wait();
    expect_orderly_end(*program_, end_, remains);
    const nlohmann::json faults = program_->summary()["faults"];
    return faults.is_array() && !faults.empty() ? faults[0] : nlohmann::json::object();
  }

  // Where workers share the job's batches, others have made steps meanwhile for the one that could not.
  void expect_all_trained(int steps) const {
    int recorded = 0;
    const std::map<int, int> by_worker = recorded_steps(*program_);
    for (const auto& [worker, count] : by_worker) recorded += count;
    EXPECT_EQ(recorded, steps * static_cast<int>(by_worker.size()));
  }

  std::optional<Program> program_;
  ProgramEnd end_;
};

INSTANTIATE_TEST_SUITE_P(Of, SingleFault, testing::Values(kPsAsync, kPsSync, kRing, kDirect), kNameOfMode);

TEST_P(SingleFault, StrikesAWorkerBeforeTheStepThatItNamesAndNoOther) {
  const nlohmann::json fault = run_with("kill:worker1@step123", 400, kLongTimeoutSeconds);
  EXPECT_THAT(fault.value("outcome", ""), MatchesRegex("killed worker 1 \\(pid [0-9]+\\)"));
  EXPECT_EQ(fault.value("step", 0), 123);
  EXPECT_EQ(recorded_steps(*program_)[1], 123) << "steps 0 to 122";
  EXPECT_THAT(end_.err, testing::HasSubstr(fault.value("outcome", "-")));
}

TEST_P(SingleFault, OfAShortStopIsSatOut) {
  const nlohmann::json fault = run_with("stop:worker1@step100+300ms", 400, kLongTimeoutSeconds);
  EXPECT_EQ(end_.exit_code, 0) << end_.err;
  expect_all_trained(400);
  EXPECT_THAT(fault.value("outcome", ""), MatchesRegex("stopped worker 1 \\(pid [0-9]+\\) for 0.3 s"));
  EXPECT_GE(seconds_to_all_steps(fault), 0.3);
}

TEST_P(SingleFault, OfAStopForGoodIsNoticedAsASilence) {
  run_with("stop:worker1@step100+3600s");
  EXPECT_THAT(end_.err, testing::HasSubstr("worker 1 (host "));
  EXPECT_THAT(end_.err, testing::HasSubstr("has stopped answering"));
}

TEST_P(SingleFault, OfTheEvaluatorEndsNoRun) {
  run_with("kill:evaluator@1ms", 400, kLongTimeoutSeconds);
  EXPECT_EQ(end_.exit_code, 0) << end_.err;
  EXPECT_THAT(end_.err, testing::HasSubstr("it is started again"));
  EXPECT_THAT(end_.err, testing::Not(testing::HasSubstr("not evaluated")));
  EXPECT_TRUE(program_->summary()["final_test_accuracy"].is_number());
}

class CutLink : public SingleFault {
 protected:
  bool is(const Mode& mode) const { return std::string_view(GetParam().name) == mode.name; }
};

Mode in_virtual_time(const Mode& mode) { return {mode.name, mode.flags + kInVirtualTime}; }

INSTANTIATE_TEST_SUITE_P(Of, CutLink, testing::Values(kPsAsync, kRing), kNameOfMode);
INSTANTIATE_TEST_SUITE_P(InVirtualTime, CutLink, testing::Values(in_virtual_time(kPsSync), in_virtual_time(kPsBounded)),
                         kNameOfMode);

TEST_P(CutLink, ForLessThanTheTimeoutIsSatOutAndNothingIsLost) {
  const nlohmann::json fault = run_with("cut:worker1@step100+400ms", 400, kLongTimeoutSeconds);
  EXPECT_EQ(end_.exit_code, 0) << end_.err;
  expect_all_trained(400);
  EXPECT_GE(seconds_to_all_steps(fault), 0.4);
  // Synchronous runs come to the same weights as nobody disturbs them.
  if (!is(kPsSync) && !is(kRing)) return;
  Program undisturbed(small_run(GetParam().flags, 400, kLongTimeoutSeconds));
  EXPECT_EQ(undisturbed.wait().exit_code, 0);
  EXPECT_TRUE(program_->weights() == undisturbed.weights());
}

TEST_P(CutLink, ForGoodPassesADeadline) {
  run_with("cut:worker1@step100+3600s");
  if (is(kRing)) {
    EXPECT_EQ(end_.exit_code, static_cast<int>(ExitCode::kTimeout)) << end_.err;
    return;
  }
  // Under parameter servers the others go on without it, also where they wait for it, since the servers say for whom.
  EXPECT_EQ(end_.exit_code, 0) << end_.err;
  EXPECT_THAT(end_.err, testing::HasSubstr("worker 1 (host "));
  EXPECT_THAT(end_.err, testing::HasSubstr("; 2 workers go on"));
  EXPECT_THAT(end_.err, testing::Not(testing::HasSubstr("worker 0 (host ")));
  EXPECT_EQ(end_.err.find("where others wait for it") == std::string::npos, is(kPsAsync)) << end_.err;
  if (is(kPsSync)) {
    for (const int rank : {0, 2}) EXPECT_EQ(recorded_steps(*program_)[rank], 400) << "worker " << rank;
    return;
  }
  // They have trained what it would have, too; what it had drawn when they had left is told.
  int recorded = 0;
  for (const auto& [worker, steps] : recorded_steps(*program_)) recorded += steps;
  EXPECT_GT(recorded_steps(*program_)[0], 400);
  EXPECT_LE(recorded, 3 * 400);
  EXPECT_EQ(end_.err.find("of the job's 1200 batches were not trained") == std::string::npos, recorded == 3 * 400)
      << recorded << " steps\n"
      << end_.err;
}

}  // namespace
}  // namespace syncopate::faults
