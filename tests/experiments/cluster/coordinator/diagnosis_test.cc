#include "experiments/cluster/coordinator/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiments/cluster/coordinator/watched_run.h"

namespace syncopate::experiments {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""s;

constexpr TimePoint kNoon{1000s};

// Two workers, two servers and an evaluator, of which all have said hello.
class DiagnosisTest : public testing::Test {
 protected:
  DiagnosisTest() {
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
      roster_.on_hello(i, 100 + static_cast<int>(i), "box");
      roster_.on_report(i, "training", 7);
    }
  }
  std::size_t worker(int rank) const { return index_of(Role::kWorker, rank); }
  std::size_t server(int rank) const { return index_of(Role::kServer, rank); }
  std::size_t evaluator() const { return plan_.processes.size() - 1; }
  std::optional<Finding> exit_of(std::size_t process, const ProcessEnd& end) {
    return diagnosis_.on_exit(process, roster_.apply(process, ProcessEvent::kExit), end, kNoon);
  }

  const JobPlan plan_ = plan_of(Mode::kPs, 2, 2);
  ProcessRoster roster_{plan_, kNoon};
  Diagnosis diagnosis_{plan_, roster_, kTimeout, {}, kNoon};

 private:
  std::size_t index_of(Role role, int rank) const {
    for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
      if (plan_.processes[i].role == role && plan_.processes[i].rank == rank) return i;
    }
    return 0;
  }
};

TEST_F(DiagnosisTest, AnEndBeforeItsTimeIsAFaultAndOneInOrderIsNone) {
  roster_.apply(worker(0), ProcessEvent::kFinished);
  EXPECT_EQ(exit_of(worker(0), kGoodEnd), std::nullopt);
  const std::optional<Finding> finding = exit_of(worker(1), kKilled);
  ASSERT_TRUE(finding);
  const auto& fault = std::get<ProcessAtFault>(*finding);
  EXPECT_EQ(fault.process, worker(1));
  EXPECT_EQ(fault.evidence, Evidence::kExit);
  EXPECT_EQ(fault.verdict.code, ExitCode::kProcessLost);
  EXPECT_THAT(fault.verdict.line, EndsWith("was killed by signal 9 (Killed)"));
}

TEST_F(DiagnosisTest, AReportThatMayHaveACauseWaitsForItAndAnyOtherDoesNot) {
  EXPECT_EQ(diagnosis_.on_failure(worker(0), kPeerIsLost, true, kNoon), std::nullopt);
  EXPECT_FALSE(diagnosis_.is_settled());
  EXPECT_EQ(diagnosis_.take_due(kNoon + 1400ms), std::nullopt);
  const std::optional<Finding> due = diagnosis_.take_due(kNoon + 1500ms);
  ASSERT_TRUE(due);
  EXPECT_EQ(std::get<ProcessAtFault>(*due).evidence, Evidence::kReport);
  EXPECT_TRUE(diagnosis_.is_settled());

  const std::optional<Finding> wrong = diagnosis_.on_failure(worker(0), Status::data_loss("labels of 12"), true, kNoon);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(std::get<RunAtFault>(*wrong).verdict.code, ExitCode::kData);
}

TEST_F(DiagnosisTest, ALossOrAMembershipEpochExplainsReports) {
  diagnosis_.on_trouble(worker(0), kNobodyAnswers, kNoon);
  diagnosis_.on_epoch_begins();
  EXPECT_TRUE(diagnosis_.is_settled());
  EXPECT_EQ(diagnosis_.on_failure(worker(0), kPeerIsLost, true, kNoon), std::nullopt);
  diagnosis_.forget_reports(worker(0));
  EXPECT_TRUE(diagnosis_.is_settled());
}

TEST_F(DiagnosisTest, WhoHasSaidHelloIsSilentAfterHalfTheTimeout) {
  EXPECT_EQ(diagnosis_.silence_of(server(1), kNoon + kTimeout / 2 - 1ms), std::nullopt);
  const std::optional<Finding> finding = diagnosis_.silence_of(server(1), kNoon + kTimeout / 2);
  ASSERT_TRUE(finding);
  EXPECT_EQ(std::get<ProcessAtFault>(*finding).evidence, Evidence::kSilence);
  EXPECT_EQ(std::get<ProcessAtFault>(*finding).verdict.code, ExitCode::kTimeout);
}

TEST_F(DiagnosisTest, ARestartedProcessThatIsSilentHangsAndIsNoNewLoss) {
  for (const ProcessEvent event : {ProcessEvent::kExit, ProcessEvent::kLoss}) roster_.apply(worker(1), event);
  EXPECT_EQ(diagnosis_.silence_of(worker(1), kNoon + 2 * kTimeout), std::nullopt) << "it has ended";
  roster_.plan_restart(worker(1), kNoon);
  roster_.on_restart(worker(1), kNoon);
  EXPECT_EQ(diagnosis_.silence_of(worker(1), kNoon + kTimeout / 2), std::nullopt);
  const std::optional<Finding> finding = diagnosis_.silence_of(worker(1), kNoon + kTimeout);
  ASSERT_TRUE(finding);
  EXPECT_THAT(std::get<HangsBeforeJoining>(*finding).line, EndsWith("has not said hello for 10 s"));
}

TEST_F(DiagnosisTest, NamesWhoIsMissedRatherThanTheServerThatSaysSo) {
  const std::optional<Finding> finding = diagnosis_.on_missing(server(0), 1, kTimeout, kNoon);
  ASSERT_TRUE(finding);
  EXPECT_EQ(std::get<ProcessAtFault>(*finding).process, worker(1));
  EXPECT_EQ(std::get<ProcessAtFault>(*finding).evidence, Evidence::kMissing);
}

TEST_F(DiagnosisTest, NamesTheServerBeforeTheEvaluationsThatAreOverdue) {
  diagnosis_.await_the_rest(kNoon);
  EXPECT_EQ(diagnosis_.overdue_afterwards(kNoon + kTimeout - 1ms), std::nullopt);
  std::optional<Finding> finding = diagnosis_.overdue_afterwards(kNoon + kTimeout);
  ASSERT_TRUE(finding);
  EXPECT_THAT(std::get<RunAtFault>(*finding).verdict.line, HasSubstr("server 0 "));
  for (const int rank : {0, 1}) roster_.apply(server(rank), ProcessEvent::kFinished);
  finding = diagnosis_.overdue_afterwards(kNoon + kTimeout);
  ASSERT_TRUE(finding);
  EXPECT_EQ(std::get<EvaluationsOverdue>(*finding).evaluator, evaluator());
}

}  // namespace
}  // namespace syncopate::experiments
