// Runs that go on from a checkpoint of a run in another mode, with other workers or another batch.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "experiments/checkpoint/checkpoint_store.h"
#include "tests/support/run_program.h"
#include "tests/support/weights_distance.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_support::Program;
using testing_support::ProgramEnd;
using testing_support::operator+;

using Flags = std::vector<std::string>;

// An epoch of 64 samples a step has 31 steps.
const Flags kCarried{"--model=mlp:784-64-10", "--train-samples=2000", "--test-samples=200"};
const Flags kTwoOf32{"--workers=2", "--batch-size=32"};
const Flags kSumming = kCarried + kTwoOf32 + Flags{"--mode=allreduce"};
const Flags kServing = kCarried + kTwoOf32 + Flags{"--mode=ps", "--consistency=sync", "--servers=2"};

// A run of 60 steps, and its checkpoint of step 40.
struct Whole {
  explicit Whole(const Flags& flags) : program(flags + Flags{"--steps=60", "--checkpoint-every=40"}) {
    const ProgramEnd end = program.wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
    checkpoint = CheckpointStore(program.output() / "checkpoints").path_of(40);
  }

  Program program;
  std::string checkpoint;
};

struct Carried {
  std::vector<float> weights;
  std::string said;
  std::int64_t step = 0;
};

Carried go_on(const Flags& flags, const std::string& checkpoint) {
  Program program(flags + Flags{"--resume=" + checkpoint});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  if (end.exit_code != 0) return {};
  return {program.weights(), end.err, program.summary()["resumed_from"]["step"]};
}

const Flags kSixty{"--steps=60"};

TEST(CarriedOver, FromAllreduceToSynchronousServersIsBitEqualToGoingOnWhole) {
  const Whole whole(kSumming);
  const Carried there = go_on(kServing + kSixty, whole.checkpoint);
  EXPECT_EQ(there.step, 40);
  EXPECT_EQ(there.weights, whole.program.weights());
  EXPECT_THAT(there.said,
              AllOf(HasSubstr("goes on at step 40 from"), HasSubstr("--mode is allreduce there and ps here")));
}

TEST(CarriedOver, FromSynchronousServersToAllreduceIsBitEqualToGoingOnWhole) {
  const Whole whole(kServing);
  EXPECT_EQ(go_on(kSumming + kSixty, whole.checkpoint).weights, whole.program.weights());
}

TEST(CarriedOver, FromColocatedServersToThemselvesAndOthersIsBitEqualToGoingOnWhole) {
  const Flags colocated = kCarried + kTwoOf32 + Flags{"--mode=ps", "--consistency=sync", "--servers=colocated"};
  const Flags one = kCarried + kTwoOf32 + Flags{"--mode=ps", "--consistency=sync", "--servers=1"};
  const Whole whole(colocated), served(one);
  ASSERT_FALSE(whole.program.weights().empty());
  EXPECT_EQ(whole.program.weights(), served.program.weights());
  EXPECT_EQ(go_on(colocated + kSixty, whole.checkpoint).weights, whole.program.weights());
  EXPECT_EQ(go_on(one + kSixty, whole.checkpoint).weights, whole.program.weights());
  EXPECT_EQ(go_on(colocated + kSixty, served.checkpoint).weights, whole.program.weights());
}

TEST(CarriedOver, FromSpareServersToThemselvesAndOthersIsBitEqualToGoingOnWhole) {
  const Flags three = kCarried + Flags{"--workers=3", "--batch-size=32", "--mode=ps", "--consistency=sync"};
  const Flags spare = three + Flags{"--servers=colocated+2"}, colocated = three + Flags{"--servers=colocated"};
  const Whole whole(spare), served(colocated);
  ASSERT_FALSE(whole.program.weights().empty());
  EXPECT_EQ(whole.program.weights(), served.program.weights());
  EXPECT_EQ(go_on(spare + kSixty, whole.checkpoint).weights, whole.program.weights());
  EXPECT_EQ(go_on(three + Flags{"--servers=colocated+1"} + kSixty, whole.checkpoint).weights, whole.program.weights());
  EXPECT_EQ(go_on(three + Flags{"--servers=2"} + kSixty, whole.checkpoint).weights, whole.program.weights());
  EXPECT_EQ(go_on(spare + kSixty, served.checkpoint).weights, whole.program.weights());
}

TEST(CarriedOver, ToAndFromServersOfTablesAloneIsBitEqualToGoingOnWhole) {
  const Flags tables = kTwoOf32 + Flags{"--model=ncf:8",        "--dataset=zipf-ratings", "--table-rows=500",
                                        "--train-samples=2000", "--test-samples=200",     "--optimizer=adam"};
  const Flags summing = tables + Flags{"--mode=allreduce"}, hybrid = tables + Flags{"--mode=hybrid", "--servers=2"},
              serving = tables + Flags{"--mode=ps", "--consistency=sync"};
  const Whole of_sums(summing), of_both(hybrid);
  EXPECT_EQ(of_both.program.weights(), of_sums.program.weights());
  // Two workers sum all among themselves, and servers have nothing.
  const Flags chosen = hybrid + Flags{"--exchange=auto"};
  const Whole of_choice(chosen);
  for (const auto& [flags, whole] : {std::pair(hybrid, &of_sums),
                                     {summing, &of_both},
                                     {serving, &of_both},
                                     {hybrid, &of_choice},
                                     {chosen, &of_choice},
                                     {chosen, &of_sums},
                                     {chosen, &of_both}}) {
    const Carried there = go_on(flags + kSixty, whole->checkpoint);
    EXPECT_EQ(there.step, 40) << flags.back();
    EXPECT_EQ(there.weights, of_sums.program.weights()) << flags.back();
  }
}

TEST(CarriedOver, FromLocalToAllreduceOfTheSameBatchLearnsTheSame) {
  const Whole whole(kCarried + Flags{"--mode=local", "--batch-size=64"});
  const Carried there = go_on(kSumming + kSixty, whole.checkpoint);
  EXPECT_EQ(there.step, 40);
  EXPECT_LT(testing_support::relative_distance(there.weights, whole.program.weights()), 1e-3);
}

TEST(CarriedOver, FromTwoWorkersToThreeGoesOnWithTheSamplesThatAreLeft) {
  const Whole whole(kSumming);
  // 31 steps of 64 samples an epoch there, 20 of 96 here; step 40 is 9 steps into the second epoch: 576 samples.
  const Carried there =
      go_on(kCarried + Flags{"--mode=allreduce", "--workers=3", "--batch-size=32", "--steps=40"}, whole.checkpoint);
  EXPECT_EQ(there.step, 26);
  EXPECT_THAT(there.said, HasSubstr("--workers is 2 there and 3 here"));
  for (const float weight : there.weights) ASSERT_TRUE(std::isfinite(weight));
}

TEST(CarriedOver, FromAsynchronousServersToAllreduceAndBackSaysWhatIsLeftBehind) {
  // Nobody waits for a checkpoint here, so that steps must leave it the time.
  const Flags async = kCarried + kTwoOf32 + Flags{"--mode=ps", "--consistency=async", "--straggler=all:+10"};
  const Whole whole(async);
  const std::string checkpoint = whole.program.output().string();
  const Carried there = go_on(kSumming + Flags{"--steps=90"}, checkpoint);
  EXPECT_THAT(there.said, AllOf(HasSubstr("not carried over: which batches had been trained"),
                                HasSubstr("not carried over: which worker had come how far")));
  EXPECT_GT(there.weights.size(), 0u);
  EXPECT_GT(go_on(async + Flags{"--steps=90"}, Whole(kSumming).checkpoint).weights.size(), 0u);
}

TEST(CarriedOver, LeavesBehindWhatCodecsKeptBack) {
  const Whole whole(kSumming + Flags{"--compress=topk:0.1"});
  EXPECT_THAT(go_on(kServing + kSixty, whole.checkpoint).said,
              HasSubstr("not carried over: what each worker's codec had kept back (error feedback)"));
}

TEST(CarriedOver, IsRefusedBeforeTheStartWhereWorkersHaveWeightsOfTheirOwn) {
  const Whole whole(kSumming);
  Program program(kCarried + kTwoOf32 +
                  Flags{"--mode=ps", "--consistency=local-sgd:5", "--steps=60", "--resume=" + whole.checkpoint});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, AllOf(HasSubstr("cannot be carried over"), HasSubstr("each worker has weights of its own")));
}

}  // namespace
}  // namespace syncopate::experiments
