#include "experiments/lab/why/causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiments/lab/why/planted_steps.h"

namespace syncopate::experiments {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> names_of(const std::vector<Cause>& causes) {
  std::vector<std::string> names;
  for (const Cause& cause : causes) names.push_back(cause.name);
  return names;
}

PlantedSteps alike(int workers, double compute, std::int64_t samples = 10) {
  PlantedSteps steps(workers, samples);
  for (int worker = 0; worker < workers; ++worker) {
    steps[worker].backward = compute;
    steps[worker].bytes_out = steps[worker].bytes_in = 1e6;
  }
  return steps;
}

std::vector<Cause> causes_in(PlantedSteps& steps, double exchange, const RunPace& pace) {
  for (int i = 0; i < 5; ++i) steps.step(exchange);
  return causes_of(*make_waterfall(steps.steps(), pace), pace);
}

TEST(Causes, AreNoneWhereNothingCostsATwentiethOfAStep) {
  PlantedSteps steps = alike(4, 100);
  steps[1].straggle = 2;
  EXPECT_THAT(causes_in(steps, 3, in_step(4)), IsEmpty());
}

TEST(Causes, BeginWithTheOneThatCostsMost) {
  PlantedSteps steps = alike(4, 100);
  steps[1].straggle = 20;
  steps[3].data = 80;
  EXPECT_THAT(names_of(causes_in(steps, 0, in_step(4))), ElementsAre("data"))
      << "the straggler is hidden behind the one that waits for data";
  steps = alike(4, 100);
  steps[1].straggle = 20;
  steps[1].data = 80;
  EXPECT_THAT(names_of(causes_in(steps, 0, in_step(4))), ElementsAre("data", "straggler"));
}

TEST(Causes, AreAnsweredWithWhatAProgramOfOnesOwnHas) {
  PlantedSteps steps = alike(4, 100);
  for (int worker = 0; worker < 4; ++worker) steps[worker].data = 80;
  RunPace pace = in_step(4);
  pace.is_own_program = true;
  EXPECT_THAT(causes_in(steps, 0, pace).front().change, HasSubstr("num_workers"));
  steps = alike(4, 1);
  for (const Cause& cause : causes_in(steps, 30, pace)) {
    EXPECT_THAT(cause.change, testing::Not(HasSubstr("--batch-size"))) << "which is the program's own";
  }
}

TEST(Causes, PredictTheRateWithoutThem) {
  PlantedSteps steps = alike(2, 10);
  steps[1].straggle = 30;
  const std::vector<Cause> causes = causes_in(steps, 0, in_step(2));
  ASSERT_THAT(names_of(causes), ElementsAre("straggler"));
  EXPECT_NEAR(*causes[0].predicted_rate, 2 * 10 / 0.010, 1e-6);
  EXPECT_THAT(causes[0].change, HasSubstr("worker 1"));
  EXPECT_THAT(causes[0].evidence, HasSubstr("4.0 x the median worker's 10 ms"));
}

// Workers that wait for nobody still have their own delays.
TEST(Causes, PromiseOnlyTheWaitsWhereStepsAreUneven) {
  PlantedSteps steps = alike(4, 10);
  for (int i = 0; i < 8; ++i) {
    for (int worker = 0; worker < 4; ++worker) steps[worker].straggle = worker == i % 4 ? 20 : 0;
    steps.step(0);
  }
  const RunPace pace = in_step(4);
  const std::vector<Cause> causes = causes_of(*make_waterfall(steps.steps(), pace), pace);
  ASSERT_THAT(names_of(causes), ElementsAre("imbalance"));
  EXPECT_NEAR(*causes[0].predicted_rate, 4 * 10 / 0.015, 1e-6);
  EXPECT_THAT(causes[0].change, HasSubstr("(--sync-every=8)"));
}

// A ring of four on links that are twice as fast would need half the time.
TEST(Causes, NameAThinLink) {
  PlantedSteps steps = alike(4, 5, 64);
  RunPace pace = in_step(4);
  pace.batch_size = 64;
  pace.link = PacedLink{.bytes_per_second = 1e8};
  const std::vector<Cause> causes = causes_in(steps, 10, pace);
  ASSERT_THAT(names_of(causes), ElementsAre("thin link"));
  EXPECT_NEAR(*causes[0].predicted_rate, 4 * 64 / 0.010, 1e-6);
}

// A remedy must be a command that the run takes.
TEST(Causes, ProposeNoOptionThatTheRunRefuses) {
  PlantedSteps steps = alike(4, 5, 64);
  RunPace pace = in_step(4);
  pace.batch_size = 64;
  pace.link = PacedLink{.bytes_per_second = 1e8};
  EXPECT_EQ(causes_in(steps, 10, pace)[0].change,
            "send half as much (--compress=int8 a quarter), or take links of twice the rate");
  pace.refused = {"compress"};
  EXPECT_EQ(causes_of(*make_waterfall(steps.steps(), pace), pace)[0].change, "take links of twice the rate");
  PlantedSteps uneven = alike(4, 10);
  for (int i = 0; i < 8; ++i) {
    for (int worker = 0; worker < 4; ++worker) uneven[worker].straggle = worker == i % 4 ? 20 : 0;
    uneven.step(0);
  }
  pace = in_step(4);
  pace.servers = 2;
  pace.refused = {"consistency", "sync-every"};
  EXPECT_EQ(causes_of(*make_waterfall(uneven.steps(), pace), pace)[0].change,
            "let workers wait for each other less (--backup-workers)");
}

TEST(Causes, HaveNoWorkerThatCostsLessThanNothing) {
  Waterfall waterfall;
  waterfall.of_workers = {{.worker = 0, .steps = 5, .compute_ms = 10, .costs_ms = -0.3}};
  EXPECT_EQ(evidence_of(PartKind::kImbalance, waterfall, in_step(2)),
            "no worker costs more than the fastest one's median step");
}

TEST(Causes, PredictTwiceAsManyServersByTheClosedFormWhereItHolds) {
  PlantedSteps steps = alike(4, 5, 64);
  RunPace pace = in_step(4);
  pace.batch_size = 64;
  pace.link = PacedLink{.bytes_per_second = 1e8};
  pace.servers = 1;
  pace.of_servers[0] = {.bytes_in = 5 * 4000000, .bytes_out = 5 * 4000000};
  pace.exchange_left_by_servers = 0.5;  // of 80 ms
  const std::vector<Cause> causes = causes_in(steps, 80, pace);
  ASSERT_THAT(names_of(causes), ElementsAre("incast", "thin link"));
  EXPECT_THAT(causes[0].by, HasSubstr("closed form"));
  EXPECT_THAT(causes[0].change, HasSubstr("--servers=2"));
  EXPECT_NEAR(*causes[0].predicted_rate, 4 * 64 / 0.045, 1e-6);
  pace.exchange_left_by_servers.reset();
  const std::vector<Cause> guessed = causes_of(*make_waterfall(steps.steps(), pace), pace);
  EXPECT_THAT(guessed[0].by, HasSubstr("half of this part"));
}

TEST(Causes, AreNotDelaysThatWereAskedForOfAllWorkers) {
  PlantedSteps steps = alike(2, 10);
  steps[0].straggle = steps[1].straggle = 5;
  EXPECT_THAT(causes_in(steps, 0, in_step(2)), IsEmpty());
}

TEST(Causes, NameATinyBatchBeforeTheLinkThatALargerOneWouldSuit) {
  PlantedSteps steps = alike(4, 5, 8);
  RunPace pace = in_step(4);
  pace.batch_size = 8;
  pace.link = PacedLink{.bytes_per_second = 1e8};
  const std::vector<Cause> causes = causes_in(steps, 10, pace);
  ASSERT_THAT(names_of(causes), ElementsAre("tiny batch", "thin link"));
  // Batches of 16 compute for 10 ms, as long as the exchange takes.
  EXPECT_THAT(causes[0].change, HasSubstr("--batch-size=16"));
  EXPECT_NEAR(*causes[0].predicted_rate, 4 * 16 / 0.020, 1e-6);
}

// A batch of usual size would not help: its exchange takes thirty times as long as computing.
TEST(Causes, NameNoTinyBatchWhereALargerOneWouldNotSuffice) {
  PlantedSteps steps = alike(4, 5);
  RunPace pace = in_step(4);
  pace.batch_size = 8;
  pace.link = PacedLink{.bytes_per_second = 1e7};
  EXPECT_THAT(names_of(causes_in(steps, 100, pace)), ElementsAre("thin link"));
}

TEST(Causes, BlameOthersForTheCoresOnlyWhereTheyUseThem) {
  PlantedSteps steps = alike(2, 10);
  steps[0].core_wait = steps[1].core_wait = 8;
  RunPace pace = in_step(2);
  pace.processes = 2;
  pace.machine = MachineLoad{.cores = 2, .others = 0.004};
  const std::vector<Cause> alone = causes_in(steps, 10, pace);
  ASSERT_THAT(names_of(alone), Contains("oversubscribed cores"));
  EXPECT_THAT(alone[0].change, testing::Not(HasSubstr("others use them")));
  pace.machine->others = 0.6;
  EXPECT_THAT(causes_of(*make_waterfall(steps.steps(), pace), pace)[0].change, HasSubstr("others use them, too"));
}

TEST(Causes, SayWhatIsNotRecorded) {
  PlantedSteps steps = alike(4, 5);
  RunPace pace = in_step(4);
  pace.servers = 2;
  for (int i = 0; i < 5; ++i) steps.step(5);
  const Waterfall waterfall = *make_waterfall(steps.steps(), pace);
  for (const PartKind kind : {PartKind::kCores, PartKind::kLink, PartKind::kIncast, PartKind::kHotShard,
                              PartKind::kSlowServer, PartKind::kServers}) {
    EXPECT_THAT(evidence_of(kind, waterfall, pace), testing::StartsWith("not recorded")) << name_of(kind);
  }
}

// What a run does not tell is not predicted.
TEST(Causes, PredictNothingOfGradientsThatWouldNotBeDropped) {
  PlantedSteps steps = alike(4, 100);
  for (int worker = 0; worker < 4; ++worker) steps[worker].dropped = 0.25;
  const std::vector<Cause> causes = causes_in(steps, 0, in_step(4));
  const auto dropped = std::ranges::find(causes, "dropped gradients", &Cause::name);
  ASSERT_NE(dropped, causes.end());
  EXPECT_THAT(dropped->change, HasSubstr("what is not dropped is waited for"));
  EXPECT_FALSE(dropped->predicted_rate);
}

TEST(Causes, AskForHostsOfTheirOwnWhereProcessesShareLinks) {
  PlantedSteps steps = alike(4, 1);
  RunPace pace = in_step(4);
  pace.shares_links = true;
  const std::vector<Cause> causes = causes_in(steps, 30, pace);
  ASSERT_THAT(names_of(causes), Contains("other communication"));
  for (const Cause& cause : causes) EXPECT_THAT(cause.change, testing::Not(HasSubstr("known link")));
  EXPECT_THAT(evidence_of(PartKind::kLink, *make_waterfall(steps.steps(), pace), pace),
              HasSubstr("links that hosts' processes share"));
}

TEST(Causes, NameNoTinyBatchWhereOthersComputingMayBeWaitedFor) {
  PlantedSteps steps = alike(4, 1);
  RunPace pace = in_step(4);
  pace.lead.reset();
  pace.batch_size = 4;
  ASSERT_THAT(names_of(causes_in(steps, 30, pace)), Contains("tiny batch"));
  pace.to_wait_less = "meet less often";
  ASSERT_THAT(names_of(causes_in(steps, 30, pace)), Contains("tiny batch")) << "all compute alike in all steps";
  for (int i = 0; i < 10; ++i) {
    steps[i % 4].backward = i % 3 == 0 ? 2 : 1;
    steps.step(30);
  }
  const std::vector<Cause> causes = causes_of(*make_waterfall(steps.steps(), pace), pace);
  ASSERT_THAT(names_of(causes), ElementsAre("other communication"));
  EXPECT_EQ(causes.front().change, "meet less often");
  EXPECT_THAT(causes.front().evidence, HasSubstr("waits for others' computing among it"));
  EXPECT_FALSE(causes.front().predicted_rate);
}

TEST(Causes, NameTheBubbleAndPredictMoreMicrobatches) {
  PlantedSteps steps = alike(4, 8);
  RunPace pace = in_step(4);
  pace.lead.reset();
  pace.pipeline = {.stages = 4, .microbatches = 4};
  std::vector<Cause> causes = causes_in(steps, 6, pace);
  ASSERT_THAT(names_of(causes), ElementsAre("pipeline bubble"));
  EXPECT_NEAR(causes.front().ms, 6, kExact);
  EXPECT_THAT(causes.front().change, HasSubstr("--microbatches=8"));
  EXPECT_NEAR(*causes.front().predicted_rate, 4 * 10 / 0.011, 1) << "11 microbatches of 1 ms";
  pace.pipeline->microbatches = 3;  // which are not halved
  pace.pipeline->schedule = worker::PipelineSchedule::kZeroBubble;
  pace.refused = {"microbatches"};
  causes = causes_in(steps, 6, pace);
  EXPECT_THAT(causes.front().change, HasSubstr("--pipeline"));
  EXPECT_FALSE(causes.front().predicted_rate);
}

// 4 stages of 8 ms in 8 microbatches: each waits for messages of 2 ms there and back before its next one.
TEST(Causes, PredictOtherWaysThroughStagesWithTheirMessages) {
  PlantedSteps steps = alike(4, 8);
  RunPace pace = in_step(4);
  pace.lead.reset();
  pace.pipeline = {.stages = 4, .microbatches = 8, .to_next_ms = {0, 0, 0, 0}, .delay_ms = 2};
  const std::vector<Cause> causes = causes_in(steps, 40, pace);
  ASSERT_THAT(names_of(causes), Contains("stages' messages"));
  const Cause& messages = *std::ranges::find(causes, "stages' messages", &Cause::name);
  EXPECT_THAT(messages.change, HasSubstr("gpipe")) << "whose messages follow each other along the pipeline alone";
  const double now = waits_of_stages_ms(make_waterfall(steps.steps(), pace)->of_workers, *pace.pipeline);
  EXPECT_NEAR(*messages.predicted_rate, 4 * 10e3 / (48 - now + 3 + 12), 5) << "3 of 11 passes, and 6 messages";
}

}  // namespace
}  // namespace syncopate::experiments
