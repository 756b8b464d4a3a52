#include "experiments/lab/report/step_log.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

StepRecord step(std::int64_t number) {
  StepRecord record;
  record.step = number;
  record.loss = static_cast<double>(number) / 3;
  return record;
}

TEST(StepLog, GivesBackWhatWasAddedInOrder) {
  const testing_support::TemporaryFolder folder;
  Result<StepLog> log = StepLog::create(folder.path());
  ASSERT_TRUE(log.ok()) << log.status().message();
  EXPECT_TRUE(log->all()->steps().empty());
  std::int64_t added = 0;
  for (const std::int64_t until : {1, 255, 256, 257, 3000}) {
    for (; added < until; ++added) ASSERT_TRUE(log->add(step(added)).ok());
    const Result<StepLog::View> view = log->all();
    ASSERT_TRUE(view.ok()) << view.status().message();
    ASSERT_EQ(std::ssize(view->steps()), until);
    for (std::int64_t i = 0; i < until; ++i) {
      ASSERT_EQ(view->steps()[static_cast<std::size_t>(i)].step, i);
      ASSERT_EQ(view->steps()[static_cast<std::size_t>(i)].loss, step(i).loss);
    }
  }
}

TEST(StepLog, LeavesNoFileAndLetsAViewOutliveIt) {
  const testing_support::TemporaryFolder folder;
  StepLog::View view;
  {
    Result<StepLog> log = StepLog::create(folder.path());
    ASSERT_TRUE(log.ok()) << log.status().message();
    ASSERT_TRUE(log->add(step(7)).ok());
    view = std::move(*log->all());
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "a killed run would leave it";
  }
  ASSERT_EQ(view.steps().size(), 1u);
  EXPECT_EQ(view.steps()[0].step, 7);
}

TEST(StepLog, SaysWhereItCannotBe) {
  const testing_support::TemporaryFolder folder;
  const std::string missing = folder.path() / "missing";
  const Result<StepLog> log = StepLog::create(missing);
  EXPECT_EQ(log.status().code(), Code::kResourceExhausted);
  EXPECT_NE(log.status().message().find(missing), std::string::npos) << log.status().message();
}

}  // namespace
}  // namespace syncopate::experiments
