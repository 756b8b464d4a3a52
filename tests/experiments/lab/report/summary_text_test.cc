#include "experiments/lab/report/summary_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "experiments/lab/report/summary_json.h"
#include "tests/support/resolved.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

RunReport sample_report(double samples_per_second) {
  RunReport report;
  report.samples_per_second = samples_per_second;
  report.window = {.seconds = 10, .samples_per_second = 1.05 * samples_per_second, .steps = 5000};
  report.total_samples = report.used_samples = 492000;
  report.goodput = 0.875;
  report.step_ms_median = 1.9;
  report.step_ms_p95 = 3;
  report.split_ms = {
      .step = 2, .data = 0.1, .forward = 0.4, .backward = 0.8, .exposed_wait = 0.5, .optimizer = 0, .other = 0.2};
  report.communication_ms = 1.2;
  report.hidden_communication_ms = 0.7;
  report.bytes_out_per_step = 1080000;
  report.bytes_in_per_step = 1080000;
  report.staleness_mean = 2.5;
  report.staleness_p95 = 4;
  report.staleness_max = 7;
  report.final_train_loss = 0.05;
  report.final_test_accuracy = 0.9731;
  report.training_seconds = 12;
  report.seconds_to_target = 5.5;
  report.samples_to_target = 60000;
  return report;
}

ResolvedRun ps_config() {
  RunRequest config;
  config.mode = Mode::kPs;
  config.workers = 4;
  config.servers = 2;
  config.target_accuracy = 0.97;
  config.output = "results/run-7";
  return resolved(config);
}

TEST(Summary, TellsHowStaleStepsWereAndWhatBackupWorkersDropped) {
  RunReport report = sample_report(41000);
  report.staleness_bins = {{.staleness = 0, .steps = 1, .loss = 0.5}, {.staleness = 3, .steps = 3, .loss = 0.25}};
  report.dropped = 0.125;
  ResolvedRun config = ps_config();
  config.backup_workers = 1;  // has no effect here
  EXPECT_THAT(summary_text(config, {&report, 1}, {}),
              HasSubstr("max updates\n    steps           0: 25.0 % loss 0.5, 3: 75.0 % loss 0.25\n  training loss"));
  config.consistency = *ps::Consistency::parse("sync");
  const std::string text = summary_text(config, {&report, 1}, {});
  EXPECT_THAT(text, HasSubstr("\n  dropped           12.5 % of the gradients, which came too late\n"));
  report.used_samples = 430500;
  EXPECT_THAT(summary_text(config, {&report, 1}, {}),
              HasSubstr("\n  training time     12 s, 430,500 samples used of 492,000 computed\n"));
  EXPECT_THAT(text, StartsWith("ps sync, 4 workers, 1 of them backup, 2 servers, shm"));
}

TEST(Summary, ReportsRejectedConnectionsWhereThereWereAny) {
  const RunReport report = sample_report(41000);
  EXPECT_THAT(summary_text(ps_config(), {&report, 1}, {}), Not(HasSubstr("  rejected ")));
  RunFacts facts;
  facts.rejected_connections = {{"coordinator", 3}, {"worker 1", 1231}};
  EXPECT_THAT(summary_text(ps_config(), {&report, 1}, facts),
              HasSubstr("  rejected          messages or connections that were not of this run, or came "
                        "twice, were dropped: 3 at "
                        "coordinator, 1,231 at worker 1\n"));
  EXPECT_THAT(summary_json({&report, 1}, facts), HasSubstr("\"rejected_connections\": 1234"));
  EXPECT_THAT(summary_json({&report, 1}, facts), HasSubstr("\"worker 1\": 1231"));
}

TEST(Summary, ShowsEveryFigureOfAParameterServerRun) {
  const std::array reports = {sample_report(41000), sample_report(40000), sample_report(42000)};
  EXPECT_EQ(summary_text(ps_config(), reports, {"run-7", "completed", {"worker 3 lost at step 120"}}),
            "ps async, 4 workers, 2 servers, shm: mlp on digits, batch 64 a worker (the worker's batch held fixed)\n"
            "  throughput        41,000 samples/s, mean over the whole job  (median of 3 runs; 40,000 .. 42,000, 4.9 "
            "%)\n"
            "  goodput           87.5 % of the workers' time: computing for updates that the weights have\n"
            "  steady window     43,050 samples/s over 10 s, once all are past their warm-up of 10 steps and until the "
            "first is done; "
            "what follows is of it\n"
            "  step              1.90 ms median, 3.00 ms p95, 2.00 ms mean:\n"
            "    data             0.100 ms   5.0 %\n"
            "    forward          0.400 ms  20.0 %\n"
            "    backward         0.800 ms  40.0 %\n"
            "    wait             0.500 ms  25.0 %\n"
            "    optimizer        0.000 ms   0.0 %\n"
            "    other            0.200 ms  10.0 %\n"
            "  communication     1.20 ms a step, 0.700 ms of it hidden under compute (58.3 %)\n"
            "  bytes             1.08 MB out, 1.08 MB in, a step and worker\n"
            "  staleness         2.50 mean, 4.0 p95, 7 max updates\n"
            "  training loss     0.0500\n"
            "  test accuracy     97.31 %\n"
            "  training time     12 s, 492,000 samples\n"
            "  time to 97 %      5.5 s, 60,000 samples\n"
            "  event             worker 3 lost at step 120\n"
            "  results           results/run-7\n");
}

TEST(Summary, SaysWhereNoWindowIsShared) {
  RunReport report = sample_report(41000);
  report.window.reset();
  const std::string text = summary_text(ps_config(), std::array{report}, {});
  EXPECT_THAT(text, HasSubstr("throughput        41,000 samples/s, mean over the whole job\n"));
  EXPECT_THAT(text, HasSubstr("steady window     none: "));
  EXPECT_THAT(text, HasSubstr("step              1.90 ms median"));
}

TEST(Summary, KeepsThroughputAndWindowApartInJson) {
  RunReport report = sample_report(41000);
  const nlohmann::json json = nlohmann::json::parse(summary_json({&report, 1}, {}));
  EXPECT_EQ(json["samples_per_second"], 41000);
  EXPECT_EQ(json["used_samples"], 492000);
  EXPECT_EQ(json["training_seconds"], 12);
  EXPECT_EQ(json["steady_window"], (nlohmann::json{{"seconds", 10}, {"samples_per_second", 43050}, {"steps", 5000}}));
  report.window.reset();
  EXPECT_TRUE(nlohmann::json::parse(summary_json({&report, 1}, {}))["steady_window"].is_null());
}

TEST(Summary, SaysWhatWasNotEvaluatedAndWhy) {
  const std::array reports = {sample_report(41000)};
  RunFacts facts;
  facts.evaluations = {.every = "every 50 steps", .weights = "the worker's", .points = 40, .evaluated = 40};
  EXPECT_THAT(
      summary_text(ps_config(), reports, facts),
      testing::AllOf(HasSubstr("\n  evaluated         40 of 40 points, every 50 steps, and at the end: the worker's\n"),
                     Not(HasSubstr("not evaluated"))));
  facts.evaluations->evaluated = 31;
  EXPECT_THAT(
      summary_text(ps_config(), reports, facts),
      HasSubstr("\n  not evaluated     9 of 40 points: they came faster than they could be taken and evaluated; a "
                "longer --evaluate-every helps\n"));
  facts.evaluations->lost_evaluator = true;
  facts.evaluations->final_evaluated = false;
  EXPECT_THAT(
      summary_text(ps_config(), reports, facts),
      HasSubstr("\n  not evaluated     9 of 40 points, and the final weights: the evaluator was lost, or not done "
                "in time\n"));
  EXPECT_EQ(to_text(*facts.evaluations), "31 of 40 points, every 50 steps: the worker's");
}

TEST(Summary, TellsWhatWasEvaluatedWhereNoPointCame) {
  EvaluationRecord record{.every = "every epoch", .weights = "the worker's"};
  EXPECT_EQ(to_text(record), "at the end alone, since no point came before (every epoch): the worker's");
  record.final_evaluated = false;
  EXPECT_EQ(to_text(record), "never, since no point came (every epoch)");
  record.is_cut_short = true;
  EXPECT_EQ(not_evaluated_text(record), "the final weights: the run ended before");
}

TEST(Summary, LeavesOutWhatAModeDoesNotHave) {
  RunRequest config;
  config.output = "out";
  const std::array reports = {sample_report(41000)};
  const std::string text = summary_text(resolved(config), reports, {});
  EXPECT_THAT(text, HasSubstr("throughput        41,000 samples/s, mean over the whole job\n"));
  EXPECT_THAT(text, Not(HasSubstr("staleness")));
  EXPECT_THAT(text, Not(HasSubstr("communication")));
  EXPECT_THAT(text, Not(HasSubstr("time to")));
}

TEST(Summary, ShowsValidationAndSaysThatTheTargetGoesByIt) {
  RunReport report = sample_report(41000);
  report.final_validation = ValidationFigures{.accuracy = 0.9625, .loss = 0.125};
  ResolvedRun config = ps_config();
  config.target_accuracy = 0.95;
  const std::string text = summary_text(config, {&report, 1}, {});
  EXPECT_THAT(text, HasSubstr("\n  validation loss   0.1250\n"
                              "    accuracy        96.25 %, of the training set's last samples, which are held out\n"));
  EXPECT_THAT(text, HasSubstr("\n  time to 95 %      5.5 s, 60,000 samples, by what is held out\n"));
}

TEST(Summary, ShowsTheTestLossBesideTheBestThatCanBeReached) {
  RunReport report = sample_report(41000);
  report.final_test_loss = 0.5;
  ResolvedRun config = ps_config();
  EXPECT_THAT(summary_text(config, {&report, 1}, {}),
              HasSubstr("\n  training loss     0.0500\n  test loss         0.5000\n  test accuracy     97.31 %\n"));
  EXPECT_THAT(summary_text(config, {&report, 1}, {.best_loss = 0.25}),
              HasSubstr("\n  test loss         0.5000\n  best reachable loss 0.2500\n  test accuracy "));
  config.dataset = "text";
  EXPECT_THAT(summary_text(config, {&report, 1}, {}),
              HasSubstr("\n  test loss         0.5000, 0.7213 bits a character\n"));
}

TEST(Summary, LabelsHowWeightsAreAveraged) {
  RunRequest config;
  config.mode = Mode::kAllreduce;
  EXPECT_EQ(describe(resolved(config)), "allreduce direct, 2 workers, shm");
  config.sync_every = 8;
  EXPECT_EQ(describe(resolved(config)), "allreduce direct sync-every:8, 2 workers, shm");
  config.gossip = Gossip::kInStep;
  EXPECT_EQ(describe(resolved(config)), "allreduce direct gossip:8, 2 workers, shm");
  config.gossip = Gossip::kAsync;
  EXPECT_EQ(describe(resolved(config)), "allreduce ring gossip-async:8, 2 workers, shm");
  config.work = WorkDivision::kQuota;
  EXPECT_EQ(describe(resolved(config)), "allreduce ring gossip-async:8, 2 workers, each with a quota, shm");
  config.shard = DataShard::kLabels;
  EXPECT_EQ(describe(resolved(config)), "allreduce ring gossip-async:8, 2 workers, each with its own labels, shm");
}

TEST(Summary, SaysWhatStalenessCountsUnderAsynchronousGossip) {
  RunRequest config;
  config.mode = Mode::kAllreduce;
  const std::array reports = {sample_report(41000)};
  EXPECT_THAT(summary_text(resolved(config), reports, {}), testing::Not(HasSubstr("  staleness  ")));
  config.gossip = Gossip::kAsync;
  EXPECT_THAT(summary_text(resolved(config), reports, {}),
              HasSubstr("\n  staleness         2.50 mean, 4.0 p95, 7 max averages\n"));
}

TEST(Summary, ShowsWhatTheSearchForABucketSizeHasComeTo) {
  RunRequest config;
  config.mode = Mode::kAllreduce;
  const std::array reports = {sample_report(41000)};
  const std::string text = summary_text(resolved(config), reports, {.of_workers = {{"bucket size", "1 MiB; ..."}}});
  EXPECT_THAT(text, HasSubstr("\n  bucket size       1 MiB; ...\n"));
}

TEST(Summary, LabelsWhatRanOnGpus) {
  ResolvedRun config = ps_config();
  config.device = DeviceKind::kCuda;
  config.share_gpu = true;
  EXPECT_EQ(describe(config), "ps async, 4 workers, 2 servers, cuda fp32, shared, staged over shm");
  config.mode = Mode::kAllreduce;
  config.share_gpu = false;
  config.collective = CollectiveKind::kNccl;
  config.precision = worker::Precision::kTf32;
  EXPECT_EQ(describe(config), "allreduce nccl, 4 workers, cuda tf32, nccl");
  config.gpu = "NVIDIA H200 (GPU 0, 139 GiB)";
  EXPECT_EQ(describe(config), "allreduce nccl, 4 workers, cuda tf32 on NVIDIA H200 (GPU 0, 139 GiB) and 3 more, nccl");
}

TEST(Summary, SaysWhoWasMadeSlow) {
  ResolvedRun config = ps_config();
  config.stragglers = *worker::Stragglers::parse("3:4x");
  RunReport report = sample_report(41000);
  report.split_ms.straggle = 0.3;
  report.stragglers = {{.worker = 3, .delay_ms_mean = 1.2, .delay_ms_max = 2.5, .slowdown = 4.01}};
  const std::string text = summary_text(config, std::array{report}, {});
  EXPECT_THAT(text, testing::StartsWith("ps async, 4 workers, 2 servers, shm, straggler 3:4x: mlp on digits"));
  EXPECT_THAT(text, HasSubstr("    straggle         0.300 ms  15.0 %\n"));
  EXPECT_THAT(text, HasSubstr("  straggler         worker 3, by 1.20 ms a step (2.50 at most): 4.01 x its compute\n"));
}

TEST(Summary, SaysWhatCompressionCosts) {
  RunReport report = sample_report(41000);
  EXPECT_THAT(summary_text(ps_config(), std::array{report}, {}), testing::Not(HasSubstr("codec")));
  report.codec_ms = 0.25;
  EXPECT_THAT(summary_text(ps_config(), std::array{report}, {}),
              HasSubstr("  codec             0.250 ms a step to compress and decompress\n"));
}

TEST(Summary, SaysWhatADeviceCosts) {
  RunReport report = sample_report(41000);
  report.launch_ms = 0.05;
  report.copy_ms = 0.25;
  const std::array reports = {report};
  EXPECT_THAT(summary_text(ps_config(), reports, {}),
              HasSubstr("  device            0.050 ms a step to give it its work, 0.250 ms of copies\n"));
}

TEST(Summary, SaysWhatWasNotMeasuredOrNotReached) {
  RunReport report;
  const std::string text = summary_text(ps_config(), std::array{report}, {"run-7", "worker 1 lost", {}});
  EXPECT_THAT(text, HasSubstr("throughput        not measured"));
  EXPECT_THAT(text, HasSubstr("not reached"));
  EXPECT_THAT(text, HasSubstr("outcome           worker 1 lost\n"));
  EXPECT_THAT(summary_text(ps_config(), {}, {"", "interrupted", {}}), HasSubstr("results           results/run-7\n"));
}

}  // namespace
}  // namespace syncopate::experiments
