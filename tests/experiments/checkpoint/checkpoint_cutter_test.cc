#include "experiments/checkpoint/checkpoint_cutter.h"

#include "experiments/checkpoint/checkpoint_keeper.h"
#include "tests/experiments/checkpoint/small_checkpoint.h"

namespace syncopate::experiments {
namespace {

using Kind = CheckpointReport::Kind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing_support::TemporaryFolder;

class ACutter : public testing::Test {
 protected:
  std::unique_ptr<CheckpointCutter> cutter(const CheckpointInterval& interval, bool together = true,
                                           std::int64_t last_step = 0) {
    return std::make_unique<CheckpointCutter>(CutterOptions{.folder = folder_.path(),
                                                            .writer = "worker-0",
                                                            .interval = interval,
                                                            .together = together,
                                                            .last_step = last_step,
                                                            .patience = std::chrono::seconds(60)},
                                              forms_, os_threads(), [this](const CheckpointReport& report) {
                                                const std::lock_guard lock(mutex_);
                                                reports_.push_back(report);
                                              });
  }
  Status take(TrainingState& state) {
    state.merge(small_worker(0));
    ++taken_;
    return {};
  }
  void do_step(CheckpointCutter& cutter, std::int64_t steps_done) {
    cutter.step_done(steps_done, [this](TrainingState& state) { return take(state); });
  }

  TemporaryFolder folder_;
  const StateForms forms_ = small_forms();
  std::mutex mutex_;
  std::vector<CheckpointReport> reports_;
  int taken_ = 0;
};

TEST_F(ACutter, BySteps) {
  const auto cutter = this->cutter({.steps = 3});
  cutter->begin(2, 0, Share::kAll);
  for (int step = 1; step <= 5; ++step) do_step(*cutter, step);
  cutter->finish();
  EXPECT_EQ(taken_, 1);
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_EQ(reports_[0].kind, Kind::kWritten) << reports_[0].reason;
  EXPECT_EQ(reports_[0].step, 3);
  EXPECT_EQ(reports_[0].membership_epoch, 2);
  EXPECT_EQ(reports_[0].part.writer, "worker-0");
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / attempt_name(3, 2) / reports_[0].part.files[0].name));
}

// However long the one before takes: nothing is trained any more that would wait.
TEST_F(ACutter, OfTheLastStepIsNeverLeftOutForTheOneBefore) {
  for (std::int64_t last = 2; last <= 40; last += 2) {
    reports_.clear();
    const auto cutter = this->cutter({.steps = 1}, true, last);
    cutter->begin(0, last - 2, Share::kAll);
    do_step(*cutter, last - 1);
    do_step(*cutter, last);
    cutter->finish();
    ASSERT_THAT(reports_, SizeIs(2));
    for (const CheckpointReport& report : reports_) EXPECT_EQ(report.kind, Kind::kWritten) << report.reason;
  }
}

TEST_F(ACutter, ByOrderAtTheStepThatWasNamed) {
  const auto cutter = this->cutter({.seconds = 1});
  cutter->begin(0, 0, Share::kAll);
  cutter->on_order(0, 4);
  cutter->on_order(7, 2);  // of another membership epoch
  for (int step = 1; step <= 9; ++step) do_step(*cutter, step);
  cutter->finish();
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_EQ(reports_[0].step, 4);
}

TEST_F(ACutter, ByOrderBesidesThoseThatAreCounted) {
  const auto cutter = this->cutter({.steps = 3});
  cutter->begin(0, 0, Share::kAll);
  cutter->on_order(0, 4);
  for (int step = 1; step <= 5; ++step) {
    do_step(*cutter, step);
    cutter->finish();
  }
  ASSERT_THAT(reports_, SizeIs(2));
  EXPECT_EQ(reports_[0].step, 3);
  EXPECT_EQ(reports_[1].step, 4);
  EXPECT_EQ(reports_[1].kind, Kind::kWritten) << reports_[1].reason;
}

TEST_F(ACutter, TakesOneThatIsBothCountedAndOrderedOnce) {
  const auto cutter = this->cutter({.steps = 3});
  cutter->begin(0, 0, Share::kAll);
  cutter->on_order(0, 3);
  for (int step = 1; step <= 5; ++step) do_step(*cutter, step);
  cutter->finish();
  EXPECT_EQ(taken_, 1);
}

TEST_F(ACutter, SaysThatAnOrderCameTooLate) {
  const auto cutter = this->cutter({.seconds = 1});
  cutter->begin(0, 0, Share::kAll);
  do_step(*cutter, 4);
  cutter->on_order(0, 4);
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_EQ(reports_[0].kind, Kind::kPassed);
  EXPECT_EQ(taken_, 0);
}

TEST_F(ACutter, ByOrderAtOnceWhereWorkersGoAtTheirOwnPace) {
  const auto cutter = this->cutter({.steps = 100}, false);
  cutter->begin(0, 0, Share::kAll);
  do_step(*cutter, 100);
  EXPECT_EQ(taken_, 0);
  cutter->on_order(0, 100);
  do_step(*cutter, 117);
  cutter->finish();
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_EQ(reports_[0].step, 100);
}

TEST_F(ACutter, ReportsWhatCannotBeTakenOrWritten) {
  const auto cutter = this->cutter({.steps = 1});
  cutter->begin(0, 0, Share::kAll);
  cutter->step_done(1, [](TrainingState&) { return Status::invalid_argument("cannot be saved"); });
  std::ofstream(folder_.path() / attempt_name(2, 0)) << "no folder";
  do_step(*cutter, 2);
  cutter->finish();
  ASSERT_THAT(reports_, SizeIs(2));
  EXPECT_EQ(reports_[0].kind, Kind::kFailed);
  EXPECT_EQ(reports_[0].reason, "cannot be saved");
  EXPECT_EQ(reports_[1].kind, Kind::kFailed);
  EXPECT_THAT(reports_[1].reason, HasSubstr(attempt_name(2, 0)));
}

class AKeeper : public ACutter {
 protected:
  std::unique_ptr<CheckpointKeeper> keeper(const CheckpointInterval& interval) {
    auto made = CheckpointKeeper::create({.folder = folder_.path(), .interval = interval, .run_id = "a-run"},
                                         {.order = [this](std::int64_t, std::int64_t step) { orders_.push_back(step); },
                                          .report = [this](const std::string& line) { lines_.push_back(line); }});
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(*made);
  }

  std::vector<std::int64_t> orders_;
  std::vector<std::string> lines_;
};

TEST_F(AKeeper, MakesCheckpointsOfWhatWritersDeliver) {
  const auto keeper = this->keeper({.steps = 3});
  keeper->policy().on_membership(0, {"worker-0"}, TimePoint());
  const auto cutter = this->cutter({.steps = 3});
  cutter->begin(0, 0, Share::kAll);
  for (int step = 1; step <= 9; ++step) {
    do_step(*cutter, step);
    cutter->finish();
  }
  for (const CheckpointReport& report : reports_) keeper->policy().on_report("worker-0", report);
  const CheckpointFigures figures = keeper->finish(TimePoint());
  EXPECT_EQ(figures.completed, 3);
  EXPECT_EQ(figures.last_step, 9);
  EXPECT_THAT(CheckpointStore(folder_.path()).steps(), ElementsAre(9, 6));
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(AKeeper, RemovesWhatCannotBeCompleted) {
  const auto keeper = this->keeper({.steps = 3});
  keeper->policy().on_membership(0, {"worker-0", "worker-1"}, TimePoint());
  ASSERT_TRUE(make_folder((folder_.path() / attempt_name(3, 0)).string()).ok());
  keeper->policy().on_report("worker-1", {.kind = Kind::kFailed, .step = 3, .reason = "disk full"});
  EXPECT_EQ(keeper->finish(TimePoint()).left_out, 1);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / attempt_name(3, 0)));
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("disk full")));
}

TEST_F(AKeeper, MarksItsFolderSoThatAnotherIsNotTakenForIt) {
  const auto keeper = this->keeper({.steps = 3});
  EXPECT_TRUE(check_shared(folder_.path(), "a-run").ok());
  EXPECT_EQ(check_shared(folder_.path(), "another-run").code(), Code::kInvalidArgument);
  EXPECT_THAT(check_shared("/nowhere", "a-run").message(), HasSubstr("a folder that all hosts share"));
}

}  // namespace
}  // namespace syncopate::experiments
