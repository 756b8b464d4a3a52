#include "experiments/lab/why/late_workers.h"

#include <gtest/gtest.h>

#include "tests/experiments/lab/why/planted_steps.h"

namespace syncopate::experiments {
namespace {

// The wait in the `index`-th step of a worker.
WaitForWorker wait_in(const RecordedSteps& steps, const RunPace& pace, int worker, std::size_t index) {
  return LateWorkers(steps, pace).wait_of({worker, &steps.of_workers.at(worker)[index]});
}

double part_of(const WaitForWorker& wait, Lateness lateness) { return wait.parts[static_cast<std::size_t>(lateness)]; }

TEST(LateWorkers, AreWaitedForUntilTheirGradientsAreThereAndNoLonger) {
  PlantedSteps steps(2);
  steps[0].backward = 10;
  steps[1].backward = 14;
  steps.step(3);
  const RunPace pace = in_step(2);
  const RecordedSteps made = steps.steps();
  const WaitForWorker wait = wait_in(made, pace, 0, 0);
  EXPECT_EQ(wait.worker, 1);
  EXPECT_NEAR(wait.ms, 4, kExact) << "of 7";
  EXPECT_NEAR(part_of(wait, Lateness::kCompute), 4, kExact);
  EXPECT_EQ(wait_in(made, pace, 1, 0).ms, 0) << "nobody waits for itself";
}

TEST(LateWorkers, AreLateForWhatTookThemLongerInProportion) {
  PlantedSteps steps(2);
  steps[0].backward = 10;
  steps[1].backward = 12;
  steps[1].straggle = 6;
  steps[0].data = 1;
  steps[1].data = 1;
  steps.step(0);
  const RunPace pace = in_step(2);
  const WaitForWorker wait = wait_in(steps.steps(), pace, 0, 0);
  EXPECT_NEAR(wait.ms, 8, kExact);
  EXPECT_NEAR(part_of(wait, Lateness::kCompute), 2, kExact);
  EXPECT_NEAR(part_of(wait, Lateness::kStraggle), 6, kExact);
  EXPECT_NEAR(part_of(wait, Lateness::kData), 0, kExact);
}

TEST(LateWorkers, AreNotWaitedForWhereTheRuleWaitsForNobody) {
  PlantedSteps steps(2);
  steps[1].straggle = 6;
  steps.step(0);
  RunPace pace = in_step(2);
  pace.lead.reset();
  EXPECT_EQ(wait_in(steps.steps(), pace, 0, 0).ms, 0);
}

// With one backup worker of three, the second is the last that is waited for.
TEST(LateWorkers, BeyondTheQuorumAreNotWaitedFor) {
  PlantedSteps steps(3);
  steps[0].backward = 10;
  steps[1].backward = 12;
  steps[2].backward = 100;
  steps.step(0);
  RunPace pace = in_step(3);
  pace.quorum = 2;
  const WaitForWorker wait = wait_in(steps.steps(), pace, 0, 0);
  EXPECT_EQ(wait.worker, 1);
  EXPECT_NEAR(wait.ms, 2, kExact);
}

// A worker that may lead by one step waits in its step 1 for the other's step 0.
TEST(LateWorkers, AreWaitedForAsFarBackAsTheBoundSays) {
  const RecordedSteps made = recorded_of({
      {.worker = 0, .step = 0, .end = 10, .total = 10, .backward = 10},
      {.worker = 0, .step = 1, .end = 35, .total = 25, .backward = 10, .wait = 15},
      {.worker = 1, .step = 0, .end = 30, .total = 30, .backward = 10, .straggle = 20},
  });
  RunPace pace = in_step(2);
  pace.lead = 1;
  EXPECT_EQ(wait_in(made, pace, 0, 0).ms, 0);
  const WaitForWorker wait = wait_in(made, pace, 0, 1);
  EXPECT_EQ(wait.worker, 1);
  EXPECT_NEAR(wait.ms, 10, kExact) << "from 20, when it began to wait, to 30";
  EXPECT_NEAR(part_of(wait, Lateness::kStraggle), 10, kExact);
}

// The delays of the steps since the last meeting all count, in the step of the meeting.
TEST(LateWorkers, AreLateForAllTheyDidSinceTheLastMeeting) {
  const RecordedSteps made = recorded_of({
      {.worker = 0, .step = 0, .end = 10, .total = 10, .backward = 10},
      {.worker = 0, .step = 1, .end = 28, .total = 18, .backward = 10, .wait = 8},
      {.worker = 1, .step = 0, .end = 18, .total = 18, .backward = 10, .straggle = 8},
      {.worker = 1, .step = 1, .end = 28, .total = 10, .backward = 10},
  });
  RunPace pace = in_step(2);
  pace.meets_every = 2;
  const WaitForWorker wait = wait_in(made, pace, 0, 1);
  EXPECT_NEAR(wait.ms, 8, kExact);
  EXPECT_NEAR(part_of(wait, Lateness::kStraggle), 8, kExact);
}

TEST(LateWorkers, DoNotNeedMemoryForStepsThatNobodyRecorded) {
  const RecordedSteps made =
      recorded_of({{.worker = 0, .step = 5}, {.worker = 1, .step = 1000000000000}, {.worker = 7, .step = 5}});
  const RunPace pace = in_step(2);
  EXPECT_EQ(wait_in(made, pace, 0, 0).ms, 0);
}

// A thousand workers, each with a gap of a million steps: one of these gaps is believed.
TEST(LateWorkers, DoNotNeedMemoryForTheGapsOfMany) {
  std::vector<PlantedStep> rows;
  for (int worker = 0; worker < 1000; ++worker) {
    rows.push_back({.worker = worker, .step = 0});
    rows.push_back({.worker = worker, .step = 999999});
  }
  EXPECT_EQ(wait_in(recorded_of(rows), in_step(1000), 999, 1).ms, 0);
}

}  // namespace
}  // namespace syncopate::experiments
