#include "experiments/lab/why/waterfall.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/experiments/lab/why/planted_steps.h"

namespace syncopate::experiments {
namespace {

double sum_of_parts(const Waterfall& waterfall) {
  double sum = 0;
  for (const Part& part : waterfall.parts) sum += part.ms;
  return sum;
}

PlantedSteps even_steps(int workers) {
  PlantedSteps steps(workers);
  for (int worker = 0; worker < workers; ++worker) {
    steps[worker].forward = 3;
    steps[worker].backward = 7;
  }
  return steps;
}

TEST(Waterfall, LosesNothingWhereWorkersComputeAlikeAndExchangeInNoTime) {
  PlantedSteps steps = even_steps(4);
  for (int i = 0; i < 5; ++i) steps.step(0);
  const auto waterfall = make_waterfall(steps.steps(), in_step(4));
  ASSERT_TRUE(waterfall.has_value());
  EXPECT_NEAR(waterfall->ideal_ms, 10, kExact);
  EXPECT_NEAR(waterfall->measured_ms, 10, kExact);
  EXPECT_NEAR(waterfall->measured_rate(), 4 * 10 / 0.010, 1e-6);
  for (const Part& part : waterfall->parts) EXPECT_NEAR(part.ms, 0, kExact) << name_of(part.kind);
}

TEST(Waterfall, NeedsAStep) { EXPECT_FALSE(make_waterfall({}, in_step(2)).has_value()); }

TEST(Waterfall, GivesADelayedWorkersTimeAndWaitsForItToTheStraggler) {
  PlantedSteps steps = even_steps(4);
  steps[2].straggle = 30;
  for (int i = 0; i < 5; ++i) steps.step(2);
  const auto waterfall = make_waterfall(steps.steps(), in_step(4));
  EXPECT_NEAR(waterfall->measured_ms, 42, kExact);
  EXPECT_NEAR(waterfall->part(PartKind::kStraggler), 30, kExact);
  EXPECT_NEAR(waterfall->part(PartKind::kExchange), 2, kExact);
  EXPECT_NEAR(waterfall->of_workers[2].costs_ms, 30, kExact);
  EXPECT_NEAR(waterfall->of_workers[2].last_of_steps, 1, kExact);
  EXPECT_EQ(waterfall->of_workers[0].costs_ms, 0);
}

TEST(Waterfall, CallsAWorkerThatComputesLongerInEveryStepAStragglerToo) {
  PlantedSteps steps = even_steps(3);
  steps[1].backward = 27;
  for (int i = 0; i < 5; ++i) steps.step(0);
  const auto waterfall = make_waterfall(steps.steps(), in_step(3));
  EXPECT_NEAR(waterfall->ideal_ms, 10, kExact);
  EXPECT_NEAR(waterfall->part(PartKind::kStraggler), 20, kExact);
  EXPECT_NEAR(waterfall->part(PartKind::kImbalance), 0, kExact);
}

// Each is slow in one step of four, so that nobody is in all.
TEST(Waterfall, CallsStepsThatAreLongNowAndThenImbalance) {
  PlantedSteps steps = even_steps(4);
  for (int i = 0; i < 16; ++i) {
    for (int worker = 0; worker < 4; ++worker) steps[worker].backward = worker == i % 4 ? 19 : 7;
    steps.step(0);
  }
  const auto waterfall = make_waterfall(steps.steps(), in_step(4));
  EXPECT_NEAR(waterfall->part(PartKind::kStraggler), 0, kExact);
  EXPECT_NEAR(waterfall->part(PartKind::kImbalance), 12, kExact);
}

// As --straggler=all:exp:MS draws them: each is delayed now and then, and in the mean all are alike.
TEST(Waterfall, CallsDelaysThatAllHaveImbalance) {
  PlantedSteps steps = even_steps(4);
  for (int i = 0; i < 16; ++i) {
    for (int worker = 0; worker < 4; ++worker) steps[worker].straggle = worker == i % 4 ? 12 : 0;
    steps.step(0);
  }
  const auto waterfall = make_waterfall(steps.steps(), in_step(4));
  EXPECT_NEAR(waterfall->part(PartKind::kStraggler), 0, kExact);
  EXPECT_NEAR(waterfall->part(PartKind::kDelays), 3, kExact) << "each worker's own";
  EXPECT_NEAR(waterfall->part(PartKind::kImbalance), 9, kExact) << "waits for the one that is delayed";
  EXPECT_NEAR(waterfall->uneven_waits_ms, 9, kExact);
  for (const WorkerPace& worker : waterfall->of_workers) EXPECT_FALSE(worker.is_slow);
}

// As --sample-cost=lognormal has it: the middle one of a few unequal steps is larger by chance.
TEST(Waterfall, CallsNoWorkerSlowThatIsFastInAThirdOfItsSteps) {
  PlantedSteps steps = even_steps(4);
  for (int i = 0; i < 15; ++i) {
    steps[3].backward = i % 3 == 0 ? 3 : 11;
    steps.step(0);
  }
  const auto waterfall = make_waterfall(steps.steps(), in_step(4));
  EXPECT_GT(waterfall->of_workers[3].compute_ms, 1.25 * waterfall->of_workers[0].compute_ms);
  EXPECT_FALSE(waterfall->of_workers[3].is_slow);
  EXPECT_NEAR(waterfall->part(PartKind::kStraggler), 0, kExact);
  EXPECT_GT(waterfall->part(PartKind::kImbalance), 1);
}

TEST(Waterfall, CountsTheSamplesThatBatchesHave) {
  PlantedSteps steps = even_steps(2);
  steps[1].samples = 4;
  for (int i = 0; i < 5; ++i) steps.step(0);
  const auto waterfall = make_waterfall(steps.steps(), in_step(2));
  EXPECT_NEAR(waterfall->measured_rate(), (10 + 4) / 0.010, 1e-6);
}

// The others go on: the window ends with them, and the lost one counts with the quarter of it that it trained.
TEST(Waterfall, CountsALostWorkerWithItsPartOfTheWindow) {
  PlantedSteps steps = even_steps(3);
  for (int i = 0; i < 40; ++i) steps.step(0);
  std::vector<PlantedStep> rows;
  for (const PlantedStep& row : steps.planted()) {
    if (row.worker < 2 || row.step < 10) rows.push_back(row);
  }
  RunPace pace = in_step(3);
  pace.lost = {2};
  const auto waterfall = make_waterfall(recorded_of(rows), pace);
  EXPECT_EQ(waterfall->steps, 90);
  EXPECT_NEAR(waterfall->workers, 2.25, kExact);
  EXPECT_NEAR(waterfall->measured_rate(), 2.25 * 10 / 0.010, 1e-6);
  EXPECT_NEAR(waterfall->ideal_rate(), waterfall->measured_rate(), 1e-6);
}

// One that was lost in its warm-up has no part in the window.
TEST(Waterfall, DoesNotWaitForTheWarmUpOfALostWorker) {
  PlantedSteps steps = even_steps(3);
  for (int i = 0; i < 40; ++i) steps.step(0);
  std::vector<PlantedStep> rows;
  for (const PlantedStep& row : steps.planted()) {
    if (row.worker < 2 || row.step < 3) rows.push_back(row);
  }
  RunPace pace = in_step(3);
  pace.warmup_steps = 5;
  pace.lost = {2};
  const auto waterfall = make_waterfall(recorded_of(rows), pace);
  EXPECT_TRUE(waterfall->has_window);
  EXPECT_NEAR(waterfall->measured_rate(), 2 * 10 / 0.010, 1e-6);
}

TEST(Waterfall, GivesWaitsForBatchesAndForWorkersThatWaitedToData) {
  PlantedSteps steps = even_steps(2);
  steps[0].data = 4;
  for (int i = 0; i < 5; ++i) steps.step(0);
  const auto waterfall = make_waterfall(steps.steps(), in_step(2));
  EXPECT_NEAR(waterfall->part(PartKind::kData), 4, kExact);
}

TEST(Waterfall, GivesTimeWithoutACoreToTheCoresAndNotToComputing) {
  PlantedSteps steps = even_steps(2);
  steps[1].backward = 12;
  steps[1].core_wait = steps[1].compute_core_wait = 5;
  steps[0].core_wait = 0;
  for (int i = 0; i < 5; ++i) steps.step(0);
  const auto waterfall = make_waterfall(steps.steps(), in_step(2));
  EXPECT_TRUE(waterfall->core_waits_recorded);
  EXPECT_NEAR(waterfall->ideal_ms, 10, kExact);
  EXPECT_NEAR(waterfall->part(PartKind::kCores), 5, kExact);
  EXPECT_NEAR(waterfall->part(PartKind::kStraggler), 0, kExact);
}

// Nobody's exchange ends before the one without a core has taken part in it.
TEST(Waterfall, GivesAnExchangeInWhichSomebodyHasNoCoreToTheCores) {
  PlantedSteps steps = even_steps(3);
  for (int worker = 0; worker < 3; ++worker) steps[worker].core_wait = 0;
  steps[1].core_wait = 6;
  for (int i = 0; i < 5; ++i) steps.step(9);
  const auto waterfall = make_waterfall(steps.steps(), in_step(3));
  EXPECT_NEAR(waterfall->part(PartKind::kCores), 6, kExact);
  EXPECT_NEAR(waterfall->part(PartKind::kExchange), 3, kExact);
}

TEST(Waterfall, TakesCompressionOutOfBackwardAndOfTheExchange) {
  PlantedSteps steps = even_steps(2);
  for (int worker = 0; worker < 2; ++worker) {
    steps[worker].backward = 9;
    steps[worker].backward_codec = 2;
    steps[worker].codec = 5;  // 3 of the exchange's 6
  }
  for (int i = 0; i < 5; ++i) steps.step(6);
  const auto waterfall = make_waterfall(steps.steps(), in_step(2));
  EXPECT_NEAR(waterfall->ideal_ms, 10, kExact);
  EXPECT_NEAR(waterfall->part(PartKind::kCodec), 5, kExact);
  EXPECT_NEAR(waterfall->part(PartKind::kExchange), 3, kExact);
}

TEST(Waterfall, CountsTheOptimizerAsIdealWhereItIsAWorkersOwn) {
  PlantedSteps steps = even_steps(2);
  for (int worker = 0; worker < 2; ++worker) steps[worker].optimizer = 1;
  for (int i = 0; i < 5; ++i) steps.step(0);
  RunPace pace = in_step(2);
  EXPECT_NEAR(make_waterfall(steps.steps(), pace)->ideal_ms, 11, kExact);
  pace.optimizer_is_local = false;
  const auto waterfall = make_waterfall(steps.steps(), pace);
  EXPECT_NEAR(waterfall->ideal_ms, 10, kExact);
  EXPECT_NEAR(waterfall->part(PartKind::kOptimizer), 1, kExact);
}

TEST(Waterfall, CountsGradientsThatWereDroppedAsTime) {
  PlantedSteps steps = even_steps(2);
  steps[1].dropped = 0.5;
  for (int i = 0; i < 5; ++i) steps.step(0);
  const auto waterfall = make_waterfall(steps.steps(), in_step(2));
  EXPECT_NEAR(waterfall->measured_ms, 10 / 0.75, kExact);
  EXPECT_NEAR(waterfall->part(PartKind::kDropped), 10 / 0.75 - 10, kExact);
}

TEST(Waterfall, LeavesTheWarmUpOut) {
  PlantedSteps steps = even_steps(2);
  steps[0].data = 1000;
  steps.step(0);
  steps[0].data = 0;
  for (int i = 0; i < 5; ++i) steps.step(0);
  RunPace pace = in_step(2);
  pace.warmup_steps = 1;
  const auto waterfall = make_waterfall(steps.steps(), pace);
  EXPECT_TRUE(waterfall->has_window);
  EXPECT_EQ(waterfall->steps, 10);
  EXPECT_NEAR(waterfall->measured_ms, 10, kExact);
  pace.warmup_steps = 100;
  EXPECT_FALSE(make_waterfall(steps.steps(), pace)->has_window);
  EXPECT_EQ(make_waterfall(steps.steps(), pace)->steps, 12);
}

// Server 1 holds up everybody's step before, so that one worker begins late, and the others wait for it.
TEST(Waterfall, GivesWaitsForAWorkerWhoseLastExchangeEndedLateToTheExchange) {
  std::vector<PlantedStep> rows;
  for (int step = 0; step < 2; ++step) {
    for (int worker = 0; worker < 2; ++worker) {
      PlantedStep row{.worker = worker, .step = step, .forward = 3, .backward = 7};
      const double late = worker == 1 ? 8 : 0;  // in the first step's exchange
      row.wait = step == 0 ? late : 8 - late;
      row.communication = row.wait;
      row.total = 10 + row.wait;
      row.end = step == 0 ? 10 + late : 28;
      row.last_shard = 1;
      row.last_shard_alone = step == 0 ? late : 0;
      rows.push_back(row);
    }
  }
  RunPace pace = in_step(2);
  pace.servers = pace.group.servers = 2;
  const auto waterfall = make_waterfall(recorded_of(rows), pace);
  EXPECT_NEAR(waterfall->part(PartKind::kImbalance), 0, kExact);
  EXPECT_NEAR(waterfall->exchange_ms, 4, kExact) << "8 ms, and as much for waiting, over four steps";
  EXPECT_NEAR(waterfall->communication_ms, 4, kExact) << "what was waited for was under way";
}

TEST(Waterfall, AddsUpWhateverTheSteps) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> draw(0, 10);
  for (int round = 0; round < 50; ++round) {
    const int workers = 1 + round % 5;
    PlantedSteps steps(workers);
    for (int step = 0; step < 8; ++step) {
      for (int worker = 0; worker < workers; ++worker) {
        PlantedStep& row = steps[worker];
        row = {.data = draw(random),
               .forward = draw(random),
               .backward = draw(random),
               .straggle = draw(random),
               .optimizer = draw(random),
               .codec = draw(random),
               .bytes_out = 1'000'000,
               .bytes_in = 1'000'000,
               .dropped = draw(random) / 20,
               .core_wait = draw(random),
               .compute_core_wait = draw(random) / 2,
               .last_shard = step % 3,
               .last_shard_alone = draw(random)};
        row.backward_codec = std::min(row.codec, row.backward) / 2;
      }
      steps.step(draw(random));
    }
    RunPace pace = in_step(workers);
    pace.servers = pace.group.servers = 3;
    for (int server = 0; server < 3; ++server) {
      pace.of_servers[server] = {
          .busy = std::chrono::milliseconds(10 * server), .bytes_in = 1000000 << server, .bytes_out = 1000000};
    }
    if (round % 2 == 0) pace.link = PacedLink{.bytes_per_second = 1e8, .delay_ms = 0.1};
    if (round % 3 == 0) pace.lead = round % 4;
    if (round % 7 == 0) pace.lead.reset();
    std::vector<PlantedStep> rows = steps.planted();
    for (PlantedStep& row : rows) row.communication *= draw(random) / 5;
    const auto waterfall = make_waterfall(recorded_of(rows), pace);
    ASSERT_TRUE(waterfall.has_value());
    EXPECT_LE(waterfall->exchange_ms, waterfall->communication_ms + kExact);
    EXPECT_NEAR(waterfall->ideal_ms + sum_of_parts(*waterfall), waterfall->measured_ms, 1e-6) << "round " << round;
    EXPECT_EQ(waterfall->parts.size(), std::size(kPartKinds));
  }
}

RunPace on_device(bool captures_steps) {
  RunPace pace = in_step(1);
  pace.on_device = true;
  pace.captures_steps = captures_steps;
  return pace;
}

// Ten steps of 20 ms, of which a GPU works for 13.
RecordedSteps half_idle_steps(double launch) {
  std::vector<PlantedStep> steps;
  for (int i = 0; i < 10; ++i) {
    steps.push_back({.step = i,
                     .end = 20.0 * (i + 1),
                     .total = 20,
                     .forward = 4,
                     .backward = 8,
                     .optimizer = 1,
                     .launch = launch,
                     .samples = 10});
  }
  return recorded_of(steps);
}

TEST(Waterfall, GivesWhatAGpuHasNothingToDoToLaunchesAndElseToItsHost) {
  const auto graphs = make_waterfall(half_idle_steps(3), on_device(true));
  EXPECT_NEAR(graphs->ideal_ms, 13, kExact);
  EXPECT_NEAR(graphs->measured_ms, 20, kExact);
  EXPECT_NEAR(graphs->part(PartKind::kLaunches), 3, kExact);
  EXPECT_NEAR(graphs->part(PartKind::kIdle), 4, kExact);
  EXPECT_NEAR(graphs->part(PartKind::kOther), 0, kExact);
  EXPECT_NEAR(graphs->ideal_ms + sum_of_parts(*graphs), graphs->measured_ms, kExact);

  const auto slow_host = make_waterfall(half_idle_steps(15), on_device(true));
  EXPECT_NEAR(slow_host->part(PartKind::kLaunches), 7, kExact) << "no more than there is";
  EXPECT_NEAR(slow_host->part(PartKind::kIdle), 0, kExact);

  // What is given call by call is given while the GPU works.
  const auto calls = make_waterfall(half_idle_steps(3), on_device(false));
  EXPECT_NEAR(calls->part(PartKind::kLaunches), 0, kExact);
  EXPECT_NEAR(calls->part(PartKind::kIdle), 7, kExact);

  const auto processor = make_waterfall(half_idle_steps(0), in_step(1));
  EXPECT_NEAR(processor->part(PartKind::kOther), 7, kExact);
  EXPECT_NEAR(processor->part(PartKind::kIdle), 0, kExact);
}

TEST(Waterfall, HasWhatAGpusClockHasMeasured) {
  const auto waterfall = make_waterfall(half_idle_steps(3), on_device(true));
  EXPECT_NEAR(waterfall->device.forward_ms, 4, kExact);
  EXPECT_NEAR(waterfall->device.backward_ms, 8, kExact);
  EXPECT_NEAR(waterfall->device.optimizer_ms, 1, kExact);
  EXPECT_NEAR(waterfall->device.launch_ms, 3, kExact);
  EXPECT_EQ(make_waterfall(half_idle_steps(3), in_step(1))->device.forward_ms, 0);
}

TEST(Waterfall, DividesAnExchangeBetweenItsCopiesAndTheRest) {
  PlantedSteps steps = even_steps(2);
  for (int worker = 0; worker < 2; ++worker) steps[worker].copy = 2;
  for (int i = 0; i < 5; ++i) steps.step(8);  // under way for as long, beside copies of 2 ms
  RunPace pace = in_step(2);
  pace.on_device = true;
  const auto waterfall = make_waterfall(steps.steps(), pace);
  EXPECT_NEAR(waterfall->part(PartKind::kCopies), 8 * 2.0 / (2 + 8), kExact);
  EXPECT_NEAR(waterfall->part(PartKind::kExchange), 8 * 8.0 / (2 + 8), kExact);
  EXPECT_NEAR(waterfall->ideal_ms + sum_of_parts(*waterfall), waterfall->measured_ms, kExact);
  EXPECT_NEAR(waterfall->device.copy_ms, 2, kExact);
}

RunPace pipelined(int stages, int microbatches) {
  RunPace pace = in_step(stages);
  pace.lead.reset();
  pace.pipeline = {.schedule = worker::PipelineSchedule::kGpipe, .stages = stages, .microbatches = microbatches};
  return pace;
}

// 8 ms in four microbatches of 2 ms: a step of 7 of these.
TEST(Waterfall, CallsWhatStagesWaitBySchedulesAloneTheBubble) {
  PlantedSteps steps(4);
  for (int worker = 0; worker < 4; ++worker) steps[worker].backward = 8;
  for (int i = 0; i < 5; ++i) steps.step(9);
  const auto waterfall = make_waterfall(steps.steps(), pipelined(4, 4));
  EXPECT_NEAR(waterfall->ideal_ms, 8, kExact);
  EXPECT_NEAR(waterfall->part(PartKind::kBubble), 6, kExact);
  EXPECT_NEAR(waterfall->part(PartKind::kExchange), 3, kExact);
  EXPECT_NEAR(waterfall->measured_ms, 17, kExact);
}

// There and back over three links, of 0.5 ms each, and under gpipe nothing more.
TEST(Waterfall, CallsWhatMessagesBetweenStagesTakeByTheirName) {
  PlantedSteps steps(4);
  for (int worker = 0; worker < 4; ++worker) steps[worker].backward = 8;
  for (int i = 0; i < 5; ++i) steps.step(12);
  RunPace pace = pipelined(4, 4);
  pace.pipeline->delay_ms = 0.5;
  const auto waterfall = make_waterfall(steps.steps(), pace);
  EXPECT_NEAR(waterfall->part(PartKind::kBubble), 6, kExact);
  EXPECT_NEAR(waterfall->part(PartKind::kMessages), 3, kExact);
  EXPECT_NEAR(waterfall->part(PartKind::kExchange), 3, kExact);
  EXPECT_NEAR(waterfall->ideal_ms + sum_of_parts(*waterfall), waterfall->measured_ms, kExact);
}

// The slower stage works all the time, but for the passes of the other before its first and behind its last.
TEST(Waterfall, CountsStagesThatAreNotAlikeInTheBubble) {
  PlantedSteps steps(2);
  steps[0].backward = 4;
  steps[1].backward = 12;
  for (int i = 0; i < 5; ++i) steps.step(1);
  const auto waterfall = make_waterfall(steps.steps(), pipelined(2, 4));
  EXPECT_NEAR(waterfall->ideal_ms, 8, kExact);
  EXPECT_NEAR(waterfall->part(PartKind::kBubble) + waterfall->part(PartKind::kExchange), 5, kExact);
  EXPECT_NEAR(waterfall->part(PartKind::kBubble), 5, kExact)
      << "12 ms, and a pass of 1 ms: a third before, the rest behind";
  EXPECT_EQ(stages_ms(waterfall->of_workers, *pipelined(2, 4).pipeline), (std::vector<double>{4, 12}));
}

}  // namespace
}  // namespace syncopate::experiments
