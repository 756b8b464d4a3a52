#include "experiments/lab/predict/reproduction_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "experiments/lab/predict/prediction_line.h"
#include "experiments/lab/predict/reproduction_charts.h"
#include "experiments/lab/report/chart_json.h"
#include "experiments/lab/report/results_folder.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using prediction::CellUse;
using prediction::Reproduction;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

// One curve of three sizes, and a cell that is left out.
Reproduction small_table() {
  return {.name = "small",
          .what = "Two <things>",
          .source = "a \"source\", of others",
          .unit = "images/s",
          .model = "twice as many, twice as fast",
          .cells = {{"one", 1, 10, 10, CellUse::kCalibrated},
                    {"one", 2, 20, 21, CellUse::kPredicted},
                    {"one", 4, 40, 40, CellUse::kPredicted},
                    {"one", 8, 40, 80, CellUse::kLeftOut}},
          .median_bar = 0.1,
          .worst_bar = 0.1};
}

TEST(ReproductionCharts, HavePointsThatWereMeasuredOnALineThatIsPredicted) {
  const std::vector<AnyChart> charts = reproduction_charts(small_table());
  ASSERT_THAT(charts, SizeIs(2));
  EXPECT_THAT(chart_json(charts[0]),
              AllOf(HasSubstr("small: over the number of workers"), HasSubstr("\"closed form\""),
                    HasSubstr("\"measured\""), HasSubstr("\"calibrated on\""),
                    HasSubstr("\"measured and closed form, images/s\""), HasSubstr("\"workers\"")));
  EXPECT_THAT(chart_json(charts[1]),
              AllOf(HasSubstr("small: errors"), HasSubstr("\"error of the closed form, %\""),
                    HasSubstr("\"predicted\""), HasSubstr("\"left out\""), HasSubstr(R"({"x":21.0,"y":5.0})")));
}

TEST(ReproductionCharts, HaveEveryCellOverItsPredictionWhereCurvesWouldBeShort) {
  Reproduction table = small_table();
  table.cells.push_back({"two", 1, 10, 10, CellUse::kPredicted});
  EXPECT_THAT(chart_json(reproduction_charts(table).front()),
              AllOf(HasSubstr("small: every cell"), HasSubstr("\"closed form = measured\""),
                    HasSubstr("\"measured, calibrated on\""), HasSubstr("\"measured, left out\""),
                    HasSubstr("\"closed form, images/s\""), HasSubstr("\"measured, images/s\"")));
}

TEST(ReproductionCharts, ShowNoErrorsWhereThereAreNone) {
  Reproduction table = small_table();
  table.cells[1].predicted = 20;
  EXPECT_THAT(reproduction_charts(table), SizeIs(1));
}

TEST(ReproductionFiles, HaveARowForEachCell) {
  const std::vector<std::string> lines = testing_support::lines_of(reproduction_csv({small_table()}));
  ASSERT_THAT(lines, SizeIs(5));
  EXPECT_EQ(lines[0], "table,setup,workers,unit,measured,predicted,low,high,error,cell,source");
  EXPECT_EQ(lines[2], "\"small\",\"one\",2,\"images/s\",20,21,,,0.05,\"predicted\",\"a \"\"source\"\", of others\"");
}

TEST(ReproductionFiles, HaveAPageThatNeedsNothingElse) {
  const std::string html = reproduction_html({small_table()});
  EXPECT_THAT(html, AllOf(HasSubstr("<b>small</b>: Two &lt;things&gt;"), HasSubstr("<td>4</td>"),
                          HasSubstr("<figure class=\"chart\">"),
                          HasSubstr("2 predicted cells: median error 2.5 %, worst 5.0 %"),
                          HasSubstr("Source: a &quot;source&quot;, of others.")));
  EXPECT_THAT(html, Not(HasSubstr("href=")));
}

TEST(ReproductionFiles, AreWrittenWhereTheyAreAskedFor) {
  const testing_support::TemporaryFolder folder;
  const std::string output = folder.path() / "new" / "forms";
  const Result<std::string> text = prediction_text({"reproduce", "--output=" + output, "mxnet"});
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_THAT(*text, AllOf(HasSubstr("mxnet: AlexNet"),
                           HasSubstr("\nresults in " + output + ": reproduction.html, reproduction.csv\n")));
  EXPECT_THAT(testing_support::text_of(output + "/reproduction.html"), HasSubstr("mxnet: over the number of workers"));
  EXPECT_THAT(testing_support::text_of(output + "/reproduction.csv"), HasSubstr("\"mxnet\",\"inception-v3\",256,"));
}

TEST(ReproductionFiles, AreWrittenOverNobodyElses) {
  const testing_support::TemporaryFolder folder;
  const std::string output = folder.path() / "forms";
  const auto written = [&] { return prediction_text({"reproduce", "--output=" + output, "mxnet"}).status(); };
  {
    const auto taken = ResultsFolder::take(output, [] { return Status(); });
    ASSERT_TRUE(taken.ok());
    EXPECT_THAT(written().message(), HasSubstr(output));
  }
  EXPECT_TRUE(written().ok());
  std::ofstream(output + "/reproduction.csv") << "mine";
  EXPECT_EQ(written().code(), Code::kInvalidArgument);
  EXPECT_EQ(testing_support::text_of(output + "/reproduction.csv"), "mine");
}

TEST(ReproductionFiles, FailWhereTheFolderIsAFile) {
  const testing_support::TemporaryFolder folder;
  const std::string path = folder.path() / "file";
  std::ofstream(path) << "x";
  const Status status = prediction_text({"reproduce", "ring", "--output=" + path}).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr(path));
}

TEST(ReproductionFiles, SayWhichOptionsThereAre) {
  EXPECT_EQ(prediction_text({"reproduce", "ring", "--outputs=x"}).status().message(),
            "reproduce: --outputs=x: no such option; there are --output, --data-dir; did you mean --output?");
  EXPECT_EQ(prediction_text({"reproduce", "ring", "--output="}).status().message(),
            "--output: needs a value, as in --output=DIR");
  EXPECT_THAT(prediction_text({"reproduce", "--output=x"}).status().message(),
              HasSubstr("needs the name of one table"));
}

}  // namespace
}  // namespace syncopate::experiments
