#include "experiments/lab/compare/kept_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/os/whole_file.h"
#include "experiments/lab/report/comparison_files.h"
#include "experiments/lab/run_page/report_line.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing_support::Program;
using testing_support::text_of;

// With a study that is over in no time.
class KeptComparison : public testing::Test {
 protected:
  KeptComparison() {
    Program program({"study", "--cluster=simulated", "--compute=1ms", "--model=softmax", "--vary=workers=2,10",
                     "--modes=allreduce,ps:async", "--steps=8", "--train-samples=2048", "--test-samples=64",
                     "--warmup-steps=1", "--evaluate-every=4", "--output=" + study_});
    EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
  }

  std::string path(const std::string& name) const { return folder_.path() / name; }

  const testing_support::TemporaryFolder folder_;
  const std::string study_ = path("study");
};

TEST_F(KeptComparison, ComesToTheVeryPageThatItWrote) {
  const std::string page = text_of(study_ + "/comparison.html");
  EXPECT_THAT(page, HasSubstr("Training loss"));
  fs::remove(study_ + "/comparison.html");
  const Result<std::string> answer = report_answer({"report", study_});
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(*answer, "page in " + study_ + "/comparison.html\n");
  EXPECT_EQ(text_of(study_ + "/comparison.html"), page);
  EXPECT_TRUE(report_answer({"report", study_, "--output=" + path("other.html")}).ok());
  EXPECT_EQ(text_of(path("other.html")), page);
}

TEST_F(KeptComparison, IsFoundWhereItWasMovedTo) {
  fs::rename(study_, path("moved"));
  const Result<ComparisonReport> moved = read_kept_comparison(path("moved"));
  ASSERT_TRUE(moved.ok()) << moved.status().message();
  ASSERT_EQ(moved->rows.size(), 4u);
  for (const ComparedRow& row : moved->rows) {
    EXPECT_THAT(row.folders, Contains(StartsWith(path("moved") + "/"))) << "so that its command works";
  }
}

TEST_F(KeptComparison, NeedsNoFoldersOfRuns) {
  const Result<ComparisonReport> whole = read_kept_comparison(study_);
  for (const auto& entry : fs::directory_iterator(study_)) {
    if (entry.is_directory()) fs::remove_all(entry.path());
  }
  const Result<ComparisonReport> report = read_kept_comparison(study_);
  ASSERT_TRUE(whole.ok() && report.ok()) << report.status().message();
  EXPECT_EQ(comparison_html(*report), comparison_html(*whole));
}

TEST_F(KeptComparison, ShowsWhatWasCompletedBeforeItWasKilled) {
  fs::remove(study_ + "/comparison.json");
  fs::remove(study_ + "/ps-async-workers-2-1/summary.json");
  const Result<ComparisonReport> report = read_kept_comparison(study_);
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_TRUE(report->simulated);
  std::vector<std::string> labels;
  for (const ComparedRow& row : report->rows) labels.push_back(row.label);
  EXPECT_THAT(labels, ElementsAre(StartsWith("allreduce workers=2 "), StartsWith("allreduce workers=10 "),
                                  StartsWith("ps:async workers=10 ")));
  EXPECT_THAT(report->notes, Contains(AllOf(HasSubstr("the 3 runs that it had completed"), HasSubstr(study_))));
}

TEST_F(KeptComparison, SaysWhatCannotBeRead) {
  ASSERT_TRUE(write_whole_file(study_ + "/comparison.json",
                               "{\"outcome\": 1, \"job\": 1, \"in_rounds\": true, \"rounds_asked\": 1, \"rows\": []}")
                  .ok());
  Program report({"report", study_});
  EXPECT_EQ(report.wait().exit_code, 3);
  EXPECT_THAT(report.errors(), HasSubstr("/comparison.json: job must be a text"));
  fs::remove(study_ + "/comparison.json");
  for (const auto& entry : fs::directory_iterator(study_)) {
    if (entry.is_directory()) fs::remove_all(entry.path());
  }
  EXPECT_TRUE(is_of_comparison(study_));
  EXPECT_THAT(read_kept_comparison(study_).status().message(), HasSubstr("none of its runs was completed"));
}

}  // namespace
}  // namespace syncopate::experiments
