#include "experiments/lab/compare/finished_runs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/os/whole_file.h"
#include "experiments/config/toml.h"
#include "experiments/lab/report/evals_csv.h"
#include "experiments/lab/report/results_writer.h"
#include "experiments/lab/report/summary_json.h"
#include "tests/support/resolved.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;
using testing_support::text_of;

class FinishedRuns : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() / name; }

  // Leaves the results of a run that came to `speed`, in each repeat times its factor.
  std::string leave(const std::string& name, const RunRequest& config, double speed,
                    const std::vector<double>& repeats = {1}) {
    const ResolvedRun run = resolved(config);
    RunReport report;
    report.samples_per_second = speed;
    report.training_seconds = 12;
    report.total_steps = 8, report.total_samples = 512, report.used_samples = 500;
    report.window = SteadyWindow{.seconds = 3, .samples_per_second = 2 * speed, .steps = 5};
    report.step_ms_median = 1.5;
    report.split_ms = {.step = 4, .exposed_wait = 1};
    report.staleness_max = 7;
    report.memory.all = 1 << 20;
    report.final_test_accuracy = 0.9, report.final_test_loss = 0.25;
    report.final_validation = ValidationFigures{.accuracy = 0.85, .loss = 0.375};
    report.seconds_to_target = 3.5, report.samples_to_target = 4096;
    RunFacts facts = facts_;
    facts.parameters = 1000, facts.steps_per_epoch = 100;
    facts.seeds = {run.seed};
    Environment environment;
    environment.host = "here", environment.cores = 2;
    const EvalRecord eval{.epoch = 1,
                          .step = 100,
                          .samples_seen = 6400,
                          .training_seconds = 2,
                          .accuracy = 0.8,
                          .loss = 0.5,
                          .validation = {{.accuracy = 0.75, .loss = 0.625}},
                          .train_loss = 0.25};
    std::vector<RunReport> reports(repeats.size(), report);
    for (std::size_t i = 0; i < repeats.size(); ++i) reports[i].samples_per_second = speed * repeats[i];
    const std::string folder = path(name);
    EXPECT_TRUE(make_folder(folder).ok());
    EXPECT_TRUE(write_whole_file(folder + "/config.toml", to_toml(run)).ok());
    EXPECT_TRUE(write_whole_file(folder + "/summary.json", summary_json(reports, facts)).ok());
    EXPECT_TRUE(write_whole_file(folder + "/evals.csv", evals_csv_header() + evals_csv_row(0, eval)).ok());
    EXPECT_TRUE(write_whole_file(folder + "/environment.json", environment_json(environment, run)).ok());
    return folder;
  }

  RunRequest async() const {
    RunRequest config;
    config.mode = Mode::kPs, config.workers = 4, config.batch_size = 16;
    return config;
  }

  const testing_support::TemporaryFolder folder_;
  RunFacts facts_;
};

TEST_F(FinishedRuns, AreMarkedIfTheyHaveGoneOnFromACheckpoint) {
  const std::string whole = leave("whole", async(), 100);
  facts_.resumed_from = "whole/checkpoints/step-000092", facts_.resumed_at = 92, facts_.resumed_samples = 5888;
  facts_.resumed_seconds = 0.5;
  const std::string resumed = leave("resumed", async(), 100);
  Result<ComparisonReport> report = read_finished_runs({whole, resumed});
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_THAT(report->rows, SizeIs(2)) << "they are no two rounds of one row";
  EXPECT_EQ(report->rows[1].label, "ps:async resumed at step 92");
  EXPECT_EQ(report->rows[1].rounds[0]->seconds_to_target, 3.5);
  EXPECT_THAT(report->notes, Contains(AllOf(HasSubstr("went on from a checkpoint at step 92"),
                                            HasSubstr("from the beginning of training, 0.5 s before that"))));

  // As versions before this one have left it.
  nlohmann::json summary = nlohmann::json::parse(testing_support::text_of(resumed + "/summary.json"));
  summary["resumed_from"] = {{"checkpoint", "there"}, {"step", 92}};
  ASSERT_TRUE(write_whole_file(resumed + "/summary.json", summary.dump()).ok());
  report = read_finished_runs({whole, resumed});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->rows[1].rounds[0]->seconds_to_target, std::nullopt);
  EXPECT_EQ(report->rows[1].rounds[0]->samples_to_target, std::nullopt);
  EXPECT_THAT(report->notes, Contains(HasSubstr("its target is left out")));
}

TEST_F(FinishedRuns, SayWhichHadNan) {
  const std::string sound = leave("sound", async(), 100);
  facts_.health = HealthRecord{.process = "worker 1", .first = {.step = 20}, .on_nan = OnNan::kGoOn};
  const std::string ill = leave("ill", async(), 100);
  const Result<ComparisonReport> report = read_finished_runs({sound, ill});
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_THAT(report->rows, SizeIs(2));
  EXPECT_THAT(report->rows[1].label, HasSubstr("NaN"));
  EXPECT_THAT(report->notes, Contains(AllOf(HasSubstr(ill + ": step 20: "), HasSubstr("nan"))));
}

TEST_F(FinishedRuns, AreReadAsTheyWereWritten) {
  RunRequest allreduce = async();
  allreduce.mode = Mode::kAllreduce;
  const Result<ComparisonReport> report = read_finished_runs({leave("a", allreduce, 100), leave("b", async(), 200)});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_FALSE(report->in_rounds);
  ASSERT_THAT(report->rows, SizeIs(2));
  const ComparedRow& row = report->rows[1];
  EXPECT_EQ(report->rows[0].label, "allreduce");
  EXPECT_EQ(row.label, "ps:async");
  EXPECT_EQ(row.rate, 0.001);
  EXPECT_EQ(row.updates_a_pass, 400) << "one for each of 4 workers' 100 steps";
  EXPECT_EQ(report->rows[0].updates_a_pass, 100);
  EXPECT_EQ(row.parameters, 1000);
  ASSERT_TRUE(row.rounds[0].has_value());
  EXPECT_EQ(row.rounds[0]->samples_per_second, 200);
  EXPECT_EQ(row.rounds[0]->used_samples, 500);
  EXPECT_EQ(row.rounds[0]->window->samples_per_second, 400);
  EXPECT_EQ(row.rounds[0]->split_ms.exposed_wait, 1);
  EXPECT_EQ(row.rounds[0]->staleness_max, 7);
  EXPECT_EQ(row.rounds[0]->final_test_accuracy, 0.9);
  EXPECT_EQ(row.rounds[0]->final_validation, (ValidationFigures{.accuracy = 0.85, .loss = 0.375}));
  EXPECT_EQ(row.rounds[0]->seconds_to_target, 3.5);
  EXPECT_EQ(row.rounds[0]->samples_to_target, 4096);
  EXPECT_EQ(row.rounds[0]->memory.all, 1 << 20);
  ASSERT_THAT(row.evals[0], SizeIs(1));
  EXPECT_EQ(row.evals[0][0].accuracy, 0.8);
  EXPECT_EQ(row.evals[0][0].samples_seen, 6400);
  EXPECT_EQ(row.evals[0][0].validation, (ValidationFigures{.accuracy = 0.75, .loss = 0.625}));
  EXPECT_EQ(row.evals[0][0].train_loss, 0.25);
  EXPECT_EQ(row.evals[0][0].train_accuracy, std::nullopt);
  EXPECT_THAT(report->config_toml, AllOf(HasSubstr("batch-size = 16"), HasSubstr("workers = 4")));
}

TEST_F(FinishedRuns, OfUnequalRatesAPassHaveTheirBeware) {
  RunRequest allreduce = async();
  allreduce.mode = Mode::kAllreduce;
  const std::string sync = leave("a", allreduce, 100), at_one_rate = leave("b", async(), 200);
  Result<ComparisonReport> report = read_finished_runs({sync, at_one_rate});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->notes,
              Contains(HasSubstr("beware: rates a pass are unequal, 0.1 of allreduce and 0.4 of ps:async")));

  RunRequest ruled = async();
  ruled.learning_rate = 0.001 / 4;
  report = read_finished_runs({sync, leave("c", ruled, 200)});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->notes, Not(Contains(HasSubstr("beware"))));
}

TEST_F(FinishedRuns, ThatBecameSlowerFromRepeatToRepeatHaveTheirBeware) {
  const std::string steady = leave("a", async(), 100, {1, 1.02, 0.99, 1, 1.01, 0.98});
  const std::string slower = leave("b", async(), 100, {1, 0.98, 0.95, 0.93, 0.9, 0.88});
  const Result<ComparisonReport> report = read_finished_runs({steady, slower});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->notes, Contains(StartsWith("beware: " + slower + " became 2.6 % slower from each repeat")));
  EXPECT_THAT(report->notes, Not(Contains(StartsWith("beware: " + steady))));
}

TEST_F(FinishedRuns, AreNamedByWhatDiffers) {
  RunRequest other = async();
  other.servers = 2, other.batch_size = 32;
  const Result<ComparisonReport> report = read_finished_runs({leave("a", async(), 100), leave("b", other, 200)});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->varied, ElementsAre("servers", "batch-size"));
  EXPECT_EQ(report->rows[0].label, "ps:async servers=1 batch-size=16");
  EXPECT_EQ(report->rows[1].label, "ps:async servers=2 batch-size=32");
}

// Its one worker has the batch of all.
TEST_F(FinishedRuns, UnderLocalStandForAllWorkers) {
  RunRequest local = async();
  local.mode = Mode::kLocal, local.workers = 1, local.global_batch_size = 64;
  const Result<ComparisonReport> report = read_finished_runs({leave("a", local, 100), leave("b", async(), 200)});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->rows[0].label, "local");
  EXPECT_EQ(report->rows[1].label, "ps:async");
}

TEST_F(FinishedRuns, OfAnotherSeedAloneAreRoundsOfOneRow) {
  RunRequest again = async(), other = async();
  again.seed = 2, other.consistency = *ps::Consistency::parse("sync");
  const Result<ComparisonReport> report =
      read_finished_runs({leave("a", async(), 100), leave("b", again, 200), leave("c", other, 300)});
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_THAT(report->rows, SizeIs(2));
  EXPECT_THAT(report->rows[0].seeds, ElementsAre(1, 2));
  EXPECT_EQ(report->rows[0].rounds[1]->samples_per_second, 200);
  EXPECT_EQ(report->rounds_asked, 2u);
  EXPECT_THAT(report->rows[1].rounds, SizeIs(2));
  EXPECT_FALSE(report->rows[1].rounds[1].has_value());
}

TEST_F(FinishedRuns, SaysWhichFileIsMissingOrNotWhole) {
  const std::string good = leave("good", async(), 100);
  const auto refusal = [&](const std::string& folder) { return read_finished_runs({good, folder}).status().message(); };
  EXPECT_THAT(refusal(path("none")), StartsWith(path("none") + ": must be the folder of a finished run"));
  for (const char* name : {"config.toml", "summary.json", "evals.csv", "environment.json"}) {
    const std::string bad = leave("bad", async(), 100), file = bad + "/" + name;
    const std::string whole = text_of(file);
    std::filesystem::remove(file);
    EXPECT_THAT(refusal(bad), HasSubstr(file));
    // Cut within the last line or bracket.
    ASSERT_TRUE(write_whole_file(file, whole.substr(0, whole.size() - 3)).ok());
    if (std::string(name) != "config.toml") {
      EXPECT_THAT(refusal(bad), StartsWith(file + ": ")) << name;
    }
    ASSERT_TRUE(write_whole_file(file, "nonsense").ok());
    EXPECT_THAT(refusal(bad), StartsWith(file + ": ")) << name;
    ASSERT_TRUE(write_whole_file(file, whole).ok());
  }
}

TEST_F(FinishedRuns, RefusesFiguresOfAnotherKind) {
  const std::string folder = leave("a", async(), 100), file = folder + "/summary.json";
  std::string text = text_of(file);
  text.replace(text.rfind("\"training_seconds\": 12.0"), 24, "\"training_seconds\": [12.0]");
  ASSERT_TRUE(write_whole_file(file, text).ok());
  EXPECT_THAT(read_finished_runs({folder, folder}).status().message(),
              EndsWith("summary.json: training_seconds must be a number"));
}

TEST_F(FinishedRuns, SaysWhatDidNotEndWell) {
  const std::string folder = leave("a", async(), 100), file = folder + "/summary.json";
  std::string text = text_of(file);
  text.replace(text.find("\"completed\""), 11, "\"interrupted\"");
  ASSERT_TRUE(write_whole_file(file, text).ok());
  const Result<ComparisonReport> report = read_finished_runs({folder, leave("b", async(), 100)});
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_THAT(report->notes, Contains(EndsWith(": interrupted")));
}

TEST_F(FinishedRuns, LeaveATableWithoutTrainingAnything) {
  RunRequest sync = async();
  sync.consistency = *ps::Consistency::parse("sync");
  const std::string first = leave("a", async(), 100), second = leave("b", sync, 200), out = path("out");
  testing::internal::CaptureStdout();
  EXPECT_EQ(compare_finished({first, second}, {}, out, "run_experiment compare a b"), ExitCode::kSuccess);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("did not run in turns"), HasSubstr("\nps:sync ")));
  EXPECT_THAT(text_of(out + "/comparison.csv"), HasSubstr("ps:sync"));
  EXPECT_THAT(text_of(out + "/comparison.html"), HasSubstr("ps:sync"));
  testing::internal::CaptureStderr();
  EXPECT_EQ(compare_finished({first, second}, {}, out, ""), ExitCode::kUsage);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("holds files already"));
}

}  // namespace
}  // namespace syncopate::experiments
