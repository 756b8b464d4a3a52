#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "experiments/lab/run_page/curve_charts.h"
#include "experiments/lab/run_page/run_page.h"
#include "experiments/lab/run_page/step_charts.h"
#include "tests/experiments/lab/why/planted_steps.h"
#include "tests/support/resolved.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// Two workers that make steps of 10 ms, 6 of them computing, one after the other; worker 1 began 5 ms later.
ReportedRun two_workers(int steps) {
  ReportedRun run;
  run.recorded.folder = "results/a run";
  run.explained.folder = run.recorded.folder;
  run.explained.pace.workers = run.recorded.config.workers = 2;
  run.explained.pace.batch_size = 64;
  run.explained.pace.warmup_steps = 1;
  for (int step = 0; step < steps; ++step) {
    for (int worker = 0; worker < 2; ++worker) {
      run.recorded.steps.of_workers[worker].push_back(record_of({.worker = worker,
                                                                 .step = step,
                                                                 .end = 10.0 * (step + 1) + 5 * worker,
                                                                 .total = 10,
                                                                 .data = 1,
                                                                 .forward = 2,
                                                                 .backward = 4,
                                                                 .wait = 2.5,
                                                                 .bytes_out = 2'000'000,
                                                                 .bytes_in = 1'000'000,
                                                                 .samples = 64,
                                                                 .loss = 2.0 - step}));
    }
  }
  run.explained.waterfall = {.ideal_ms = 6, .measured_ms = 10, .workers = 2, .batch_size = 64};
  run.explained.waterfall.parts = {{PartKind::kData, 1}, {PartKind::kImbalance, -0.5}, {PartKind::kExchange, 3.5}};
  run.recorded.summary.reports.resize(1);
  run.recorded.summary.reports[0].staleness_bins = {{0, 30, 0.5, -0.01}, {1, 10, 0.7, 0.02}};
  run.evals = {{.epoch = 1, .samples_seen = 256, .training_seconds = 0.02, .accuracy = 0.9, .loss = 0.4}};
  return run;
}

// The same as it would be read from its files.
ReportedRun read_run(ClusterKind cluster) {
  ReportedRun run = two_workers(40);
  RunRequest request;
  request.mode = Mode::kPs;
  request.workers = 2;
  request.cluster = cluster;
  run.recorded.config = resolved(request);
  run.recorded.summary.outcome = "completed";
  run.explained = *explain(run.recorded);
  return run;
}

TEST(ThroughputOverTime, SpreadsAStepOverTheTimeThatItTook) {
  // Until 5 ms one worker trains, until 40 ms both, and then the other one.
  const std::vector<ThroughputPiece> pieces = throughput_over_time(two_workers(4).recorded.steps, 9);
  ASSERT_THAT(pieces, SizeIs(9));
  EXPECT_NEAR(pieces[0].samples_per_second, 6400, 1e-6);
  for (std::size_t i = 1; i < 8; ++i) EXPECT_NEAR(pieces[i].samples_per_second, 12800, 1e-6);
  EXPECT_NEAR(pieces[8].samples_per_second, 6400, 1e-6);
  EXPECT_DOUBLE_EQ(pieces[0].seconds, 0.0025);
}

TEST(ThroughputOverTime, CountsAllSamplesOnceAndNoneThatWereDropped) {
  RecordedSteps steps = two_workers(5).recorded.steps;
  steps.of_workers[1][1].sync.dropped = 0.5;
  double samples = 0;
  for (const ThroughputPiece& piece : throughput_over_time(steps, 7)) samples += piece.samples_per_second * 0.055 / 7;
  EXPECT_NEAR(samples, 9.5 * 64, 1e-6);
  EXPECT_THAT(throughput_over_time({}, 7), IsEmpty());
}

TEST(CurveCharts, CanBeDrawnOverTimeStepsAndSamples) {
  const std::vector<AnyChart> charts = curve_charts(two_workers(40));
  const Chart& loss = std::get<Chart>(charts[0]);
  EXPECT_EQ(loss.view, "time");
  EXPECT_EQ(loss.series[0].points.size(), 10) << "of 4 steps of each worker";
  ASSERT_THAT(loss.others, ElementsAre(Field(&ChartView::name, "steps"), Field(&ChartView::name, "samples")));
  EXPECT_EQ(loss.series[1].points[0].x, 0.02);
  EXPECT_EQ(loss.others[0].series[1].points[0].x, 4) << "256 samples in batches of 64";
  EXPECT_EQ(loss.others[1].series[1].points[0].x, 256);
}

TEST(CurveCharts, ShowTrainingAndWhatWasHeldOutBesideTheTestSet) {
  ReportedRun run = two_workers(40);
  EXPECT_THAT(std::get<Chart>(curve_charts(run)[1]).series, SizeIs(1)) << "nothing is held out";
  run.evals[0].validation = ValidationFigures{.accuracy = 0.8, .loss = 0.5};
  run.evals[0].train_accuracy = 0.85;
  const std::vector<AnyChart> charts = curve_charts(run);
  const Chart& loss = std::get<Chart>(charts[0]);
  ASSERT_THAT(loss.series, SizeIs(3));
  EXPECT_EQ(loss.series[2].name, "validation");
  EXPECT_EQ(loss.series[2].points[0].y, 0.5);
  const Chart& quality = std::get<Chart>(charts[1]);
  ASSERT_THAT(quality.series, SizeIs(3));
  EXPECT_EQ(quality.series[1].points[0].y, 0.8);
  EXPECT_EQ(quality.series[2].name, "training");
  EXPECT_EQ(quality.others[1].series[2].points[0].x, 256);
}

TEST(CurveCharts, ShowWhatWouldBeIdealBesideWhatWas) {
  const std::vector<AnyChart> charts = curve_charts(two_workers(40));
  const Chart& throughput = std::get<Chart>(charts[2]);
  EXPECT_EQ(throughput.series[0].points.size(), 10);
  EXPECT_EQ(throughput.series[1].name, "ideal");
  EXPECT_NEAR(throughput.series[1].points[0].y, 2 * 64 / 6e-3, 1e-6);
}

TEST(SplitChart, AddsUpToTheStep) {
  const BarChart chart = split_chart(two_workers(4));
  EXPECT_THAT(chart.rows, ElementsAre("worker 0", "worker 1"));
  ASSERT_EQ(chart.series.back().name, "other");
  EXPECT_DOUBLE_EQ(chart.series.back().bars[1].to, 10);
  EXPECT_DOUBLE_EQ(chart.series.back().bars[1].from, 9.5);
  for (const BarSeries& series : chart.series) EXPECT_NE(series.name, "straggle") << "nobody was made slow";
}

TEST(WaterfallChart, GoesFromTheIdealStepToTheMeasuredOne) {
  const BarChart chart = waterfall_chart(two_workers(4));
  EXPECT_THAT(chart.rows, SizeIs(5));
  const auto& [ends, lost, gained] = std::tie(chart.series[0], chart.series[1], chart.series[2]);
  EXPECT_DOUBLE_EQ(lost.bars[0].from, 6);
  EXPECT_DOUBLE_EQ(gained.bars[0].from, 7);
  EXPECT_DOUBLE_EQ(gained.bars[0].to, 6.5);
  EXPECT_DOUBLE_EQ(lost.bars[1].to, 10);
  EXPECT_DOUBLE_EQ(ends.bars[1].to, 10);
}

TEST(StalenessCharts, JoinStalenessToLoss) {
  const BarChart bars = staleness_chart(two_workers(4));
  EXPECT_THAT(bars.series[0].bars, ElementsAre(AllOf(Field(&Bar::to, 75), Field(&Bar::label, "75 %, loss 0.500")),
                                               AllOf(Field(&Bar::to, 25), Field(&Bar::label, "25 %, loss 0.700"))));
  EXPECT_DOUBLE_EQ(staleness_loss_chart(two_workers(4)).series[0].points[1].y, 0.02);
}

TEST(StalenessCharts, PutWhatIsLeftOfManyBinsIntoOne) {
  ReportedRun run = two_workers(4);
  for (int staleness = 2; staleness < 100; ++staleness)
    run.recorded.summary.reports[0].staleness_bins.push_back({staleness, 1, 0.5, 0});
  const BarChart bars = staleness_chart(run);
  double all = 0;
  for (const Bar& bar : bars.series[0].bars) all += bar.to;
  EXPECT_NEAR(all, 100, 1e-9);
  EXPECT_EQ(bars.rows.back(), "15 to 99");
  EXPECT_THAT(bars.rows, SizeIs(16));
}

TEST(StalenessCharts, AreNoneWhereNothingWasStale) {
  ReportedRun run = two_workers(4);
  run.recorded.summary.reports[0].staleness_bins = {{0, 30, 0.5, 0}};
  EXPECT_FALSE(has_something(staleness_chart(run)));
  EXPECT_FALSE(has_something(staleness_loss_chart(run)));
}

TEST(BytesChart, HasEachProcess) {
  ReportedRun run = two_workers(4);
  run.recorded.summary.reports[0].servers[0] = {.bytes_in = 16'000'000, .bytes_out = 8'000'000};
  const BarChart chart = bytes_chart(run);
  EXPECT_THAT(chart.rows, ElementsAre("worker 0", "worker 1", "server 0"));
  EXPECT_DOUBLE_EQ(chart.series[0].bars[1].to, 8);
  EXPECT_DOUBLE_EQ(chart.series[1].bars[1].to, 12);
  EXPECT_DOUBLE_EQ(chart.series[1].bars[2].from, 8);
  EXPECT_DOUBLE_EQ(chart.series[1].bars[2].to, 24);
}

TEST(TimelineChart, BeginsWhereAllAreBeyondTheirWarmUp) {
  const BarChart chart = timeline_chart(two_workers(20));
  ASSERT_EQ(chart.series[0].name, "data");
  // The last warm-up step ends after 15 ms, when worker 1 begins a step; worker 0 does after 20 ms.
  double least = 1e9, most = 0;
  for (const Bar& bar : chart.series[0].bars) {
    if (bar.row == "worker 0") least = std::min(least, bar.from);
    most = std::max(most, bar.to);
  }
  EXPECT_DOUBLE_EQ(least, 5);
  EXPECT_LE(most, 60);
  EXPECT_EQ(chart.series[1].bars[0].tip, "2.00 ms, step 1");
}

TEST(RunPage, SaysThatARunWasSimulatedWhereverItsFiguresStand) {
  ReportedRun run = read_run(ClusterKind::kSimulated);
  run.recorded.summary.simulated_network = "frames";
  const std::string html = run_html(run);
  EXPECT_THAT(html, AllOf(HasSubstr("simulated in virtual time, network: frames"),
                          HasSubstr("<figcaption>Throughput of the whole job, simulated</figcaption>"),
                          HasSubstr("\"label\":\"simulated samples/s\"")));
  EXPECT_THAT(run_html(read_run(ClusterKind::kReal)), Not(HasSubstr("simulated samples")));
}

TEST(RunPage, HasTheCommandThatRunsTheSameAgain) {
  EXPECT_THAT(run_html(read_run(ClusterKind::kReal)),
              HasSubstr("./run_experiment --config=&#39;results/a run/config.toml&#39;"));
}

TEST(RunPage, EscapesWhatTheFilesSay) {
  ReportedRun run = read_run(ClusterKind::kReal);
  run.recorded.summary.events = {"<script>alert(1)</script>"};
  run.environment.host = "</table>";
  EXPECT_THAT(run_html(run), AllOf(HasSubstr("&lt;script&gt;alert(1)"), HasSubstr("&lt;/table&gt;")));
}

TEST(RunFacts, NameAnEfficiencyByWhatIsDividedByWhat) {
  const std::vector<std::vector<std::string>> rows = run_facts_rows(two_workers(40));
  const auto value_of = [&](const std::string& what) {
    const auto row = std::ranges::find(rows, what, [](const auto& each) { return each.front(); });
    return row == rows.end() ? "no such row" : row->back();
  };
  EXPECT_THAT(value_of("efficiency: ideal step over measured step"), HasSubstr("60.0 %")) << "6 ms over 10 ms";
  EXPECT_EQ(value_of("ideal throughput"), "21,333 samples/s") << "2 workers, 64 samples each, 6 ms";
}

}  // namespace
}  // namespace syncopate::experiments
