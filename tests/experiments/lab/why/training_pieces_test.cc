#include "experiments/lab/why/training_pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/experiments/lab/why/planted_steps.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double kNoLoss = std::numeric_limits<double>::quiet_NaN();

// Steps of 10 ms and 64 samples of two workers, of which worker 1 began 5 ms later; losses fall from 2 by 1 a step.
std::vector<PlantedStep> two_workers_steps(int count) {
  std::vector<PlantedStep> steps;
  for (int worker = 1; worker >= 0; --worker) {
    for (int step = 0; step < count; ++step) {
      steps.push_back({.worker = worker,
                       .step = step,
                       .end = 10.0 * (step + 1) + 5 * worker,
                       .total = 10,
                       .samples = 64,
                       .loss = 2.0 - step});
    }
  }
  return steps;
}

TEST(TrainingPieces, AreMeansOfAllWorkersStepsInTheOrderOfTheirEnds) {
  const std::vector<TrainingPiece> pieces = training_pieces(recorded_of(two_workers_steps(4)), 4);
  ASSERT_THAT(pieces, SizeIs(4));
  EXPECT_DOUBLE_EQ(pieces[1].loss, 1);
  EXPECT_DOUBLE_EQ(pieces[1].seconds, 0.025);
  EXPECT_DOUBLE_EQ(pieces[1].steps, 4);
  EXPECT_DOUBLE_EQ(pieces[1].samples, 256);
}

TEST(TrainingPieces, LeaveOutLossesThatAreNoNumbers) {
  std::vector<PlantedStep> steps = two_workers_steps(2);
  steps[0].loss = steps[1].loss = steps[3].loss = kNoLoss;
  EXPECT_THAT(training_pieces(recorded_of(steps), 2),
              ElementsAre(AllOf(Field(&TrainingPiece::loss, 2.0), Field(&TrainingPiece::steps, 2))));
  EXPECT_THAT(training_pieces({}, 5), IsEmpty());
}

TEST(TrainingPieces, AreAsManyAsHaveSomeStepsOfEachWorker) {
  EXPECT_EQ(pieces_of(1000, 2, 40), 40);
  EXPECT_EQ(pieces_of(80, 2, 40), 10);
  EXPECT_EQ(pieces_of(3, 4, 40), 1);
  EXPECT_EQ(pieces_of(0, 0, 40), 1);
}

}  // namespace
}  // namespace syncopate::experiments
