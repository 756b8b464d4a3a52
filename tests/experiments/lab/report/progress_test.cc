#include "experiments/lab/report/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/text/format.h"

namespace syncopate::experiments {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;

StepRecord step_of(std::int64_t step, milliseconds end, milliseconds total) {
  StepRecord record;
  record.step = step;
  record.end = TimePoint() + end;
  record.total = total;
  record.samples = 64;
  record.loss = 0.5;
  return record;
}

Progress midway() {
  return {.epoch = 1,
          .epochs = 3,
          .step = 312,
          .steps = 468,
          .samples_per_second = 41250,
          .step_ms = 1.551,
          .loss = 0.12342,
          .accuracy = 0.965,
          .evaluated_epoch = 1.5,
          .seconds_left = 12};
}

TEST(Format, IsWhatPeopleRead) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(99.46), "99.5");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1000), "1,000");
  EXPECT_EQ(format_count(1234567.8), "1,234,568");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1080000), "1.08 MB");
  EXPECT_EQ(format_duration(0.44), "0.4 s");
  EXPECT_EQ(format_duration(12.4), "12 s");
  EXPECT_EQ(format_duration(185), "3 min 05 s");
  EXPECT_EQ(format_duration(7800), "2 h 10 min");
  EXPECT_EQ(format_ms(0.1234), "0.123");
  EXPECT_EQ(format_ms(1.554), "1.55");
  EXPECT_EQ(format_ms(1230.4), "1230");
}

TEST(Progress, NamesNoEndThatNobodyKnows) {
  Progress progress = midway();
  progress.epochs = progress.steps = 0;
  EXPECT_EQ(to_text(progress), "step 312  loss 0.1234  accuracy 0.9650  mean 41,250 samples/s, 1.55 ms/step");
}

TEST(Progress, ReadsInOneLine) {
  EXPECT_EQ(to_text(midway()),
            "epoch 2/3  step 312/468  loss 0.1234  accuracy 0.9650 at epoch 1.5  mean 41,250 samples/s, 1.55 ms/step  "
            "ETA 12 s");
}

TEST(Progress, KeepsLossAndTimeLeftWhereALineIsShort) {
  EXPECT_EQ(to_text(midway(), 119), to_text(midway()));
  EXPECT_EQ(to_text(midway(), 90), "epoch 2/3  step 312/468  loss 0.1234  accuracy 0.9650  41,250 samples/s  ETA 12 s");
  EXPECT_EQ(to_text(midway(), 80), "epoch 2/3  step 312/468  loss 0.1234  accuracy 0.9650 at epoch 1.5  ETA 12 s");
  EXPECT_EQ(to_text(midway(), 70), "epoch 2/3  step 312/468  loss 0.1234  accuracy 0.9650  ETA 12 s");
  EXPECT_EQ(to_text(midway(), 60), "epoch 2/3  step 312/468  loss 0.1234  ETA 12 s");
  EXPECT_EQ(to_text(midway(), 40), "step 312/468  loss 0.1234  ETA 12 s");
  EXPECT_EQ(to_text(midway(), 25), "loss 0.1234  ETA 12 s");
  EXPECT_EQ(to_text(midway(), 5), "loss 0.1234  ETA 12 s");
  for (std::size_t columns = 22; columns < 130; ++columns) EXPECT_LE(to_text(midway(), columns).size(), columns);
}

TEST(Progress, ShowsALossThatHasGrownInFewDigits) {
  Progress progress = midway();
  progress.loss = 1.25e29;
  EXPECT_THAT(to_text(progress), HasSubstr("  loss 1.25e+29  "));
}

// So that files of what was printed can be read where they are shown.
TEST(ProgressPrinter, KeepsLinesWithinEightyColumnsWhereThereIsNoTerminal) {
  ProgressPrinter printer(0);
  EXPECT_EQ(printer.epoch_finished(midway(), TimePoint()), to_text(midway(), 80) + "\n");
  Progress early = midway();
  early.accuracy.reset();
  EXPECT_EQ(printer.epoch_finished(early, TimePoint()),
            "epoch 2/3  step 312/468  loss 0.1234  41,250 samples/s  ETA 12 s\n");
}

TEST(Progress, GoesOnBelowWithPartsThatDoNotFit) {
  EXPECT_EQ(side_by_side({"epoch 3/3", "evaluated", "test loss 0.0530"}), "epoch 3/3  evaluated  test loss 0.0530");
  const std::string wide(50, 'w');
  EXPECT_EQ(side_by_side({"epoch 3/3", wide, wide, "end"}), "epoch 3/3  " + wide + "\n  " + wide + "  end");
}

TEST(ProgressTracker, CountsWhatAllWorkersHaveFinished) {
  ProgressTracker tracker({.workers = 2, .steps_per_epoch = 5, .total_steps = 10});
  EXPECT_EQ(tracker.progress().samples_per_second, 0);
  for (int i = 0; i < 6; ++i) tracker.add(0, step_of(i, milliseconds(10 * (i + 1)), milliseconds(10)));
  EXPECT_EQ(tracker.epochs_finished(), 0);
  for (int i = 0; i < 5; ++i) tracker.add(1, step_of(i, milliseconds(10 * (i + 1)), milliseconds(10)));
  EXPECT_EQ(tracker.epochs_finished(), 1);
  const Progress progress = tracker.progress();
  EXPECT_EQ(progress.step, 5);
  EXPECT_EQ(progress.epoch, 0) << "the line that ends the first epoch belongs to it";
  EXPECT_EQ(progress.epochs, 2);
  EXPECT_EQ(progress.samples_per_second, 11 * 64 / 0.06);
  EXPECT_EQ(progress.step_ms, 10);
  EXPECT_DOUBLE_EQ(progress.seconds_left, 5 * 0.06 / 5) << "what is left, at the pace of all so far";
}

TEST(ProgressTracker, PredictsTheEndFromTheWholeRunAndNotFromItsLastSeconds) {
  ProgressTracker tracker({.workers = 1, .steps_per_epoch = 100, .total_steps = 100});
  // Ten steps of a second, then ten that are ten times as fast.
  int ms = 0;
  for (int i = 0; i < 20; ++i) {
    const int length = i < 10 ? 1000 : 100;
    ms += length;
    tracker.add(0, step_of(i, milliseconds(ms), milliseconds(length)));
  }
  EXPECT_NEAR(tracker.progress().seconds_left, 11.0 / 20 * 80, 1e-9);
}

TEST(ProgressTracker, PredictsForAResumedRunFromTheStepsThatItHasMadeItself) {
  ProgressTracker tracker({.workers = 1, .steps_per_epoch = 100, .total_steps = 100, .first_step = 50});
  EXPECT_EQ(tracker.progress().step, 50);
  for (int i = 50; i < 60; ++i) tracker.add(0, step_of(i, milliseconds(100 * (i - 49)), milliseconds(100)));
  EXPECT_NEAR(tracker.progress().seconds_left, 4, 1e-9);
}

TEST(ProgressTracker, SaysOfWhenItsNewestEvaluationIs) {
  ProgressTracker tracker({.workers = 1, .steps_per_epoch = 100, .total_steps = 100});
  EXPECT_FALSE(tracker.progress().accuracy.has_value());
  tracker.add(EvalRecord{.epoch = 0.5, .accuracy = 0.25});
  EXPECT_EQ(tracker.progress().accuracy, 0.25);
  EXPECT_EQ(tracker.progress().evaluated_epoch, 0.5);
}

TEST(ProgressTracker, ShowsTrainingAndValidationSideBySideWhereSamplesAreHeldOut) {
  ProgressTracker tracker({.workers = 1, .steps_per_epoch = 100, .total_steps = 100, .holds_out = true});
  for (int i = 0; i < 4; ++i) {
    StepRecord step = step_of(i, milliseconds(100 * (i + 1)), milliseconds(100));
    step.loss = i;
    step.accuracy = 0.25 * i;
    tracker.add(0, step);
  }
  tracker.add(EvalRecord{.epoch = 0.5, .accuracy = 0.25, .validation = {{.accuracy = 0.5, .loss = 2}}});
  const std::string line = to_text(tracker.progress());
  EXPECT_THAT(line, testing::HasSubstr("  train loss 1.5000, accuracy 0.3750  validation loss 2.0000, accuracy 0.5000 "
                                       "at epoch 0.5  "));
}

TEST(ProgressTracker, CountsTheJobWhereWorkersShareIt) {
  ProgressTracker tracker(
      {.workers = 2, .steps_per_epoch = 5, .total_steps = 10, .first_step = 1, .by_position = true});
  EXPECT_EQ(tracker.progress().step, 1);
  StepRecord step = step_of(0, milliseconds(10), milliseconds(10));
  for (step.position = 2; step.position < 15; ++step.position) tracker.add(0, step);
  EXPECT_EQ(tracker.progress().step, 7) << "though worker 1 has made no step";
  EXPECT_EQ(tracker.epochs_finished(), 1);
  step.position = 19;
  tracker.add(1, step);
  EXPECT_EQ(tracker.progress().step, 10);
}

TEST(ProgressTracker, CountsUpdatesWhereSomeWorkersAreBackups) {
  ProgressTracker tracker(
      {.workers = 3, .steps_per_epoch = 5, .total_steps = 10, .by_position = true, .batches_an_update = 2});
  StepRecord step = step_of(0, milliseconds(10), milliseconds(10));
  step.position = 2 * 14;  // of 15 updates, which use 30 batches
  tracker.add(2, step);
  EXPECT_EQ(tracker.progress().step, 10);
}

TEST(ProgressTracker, MeasuresTheLastTwoSecondsOnly) {
  ProgressTracker tracker({.workers = 1, .steps_per_epoch = 100, .total_steps = 100});
  tracker.add(0, step_of(0, milliseconds(1000), milliseconds(1000)));
  tracker.add(0, step_of(1, milliseconds(3500), milliseconds(500)));
  EXPECT_EQ(tracker.progress().step_ms, 500);
  EXPECT_EQ(tracker.progress().samples_per_second, 128);
}

TEST(ProgressTracker, GoesOnWithoutALostWorker) {
  ProgressTracker tracker({.workers = 2, .steps_per_epoch = 1, .total_steps = 3});
  tracker.add(0, step_of(0, milliseconds(10), milliseconds(10)));
  EXPECT_EQ(tracker.epochs_finished(), 0);
  tracker.worker_lost(1);
  EXPECT_EQ(tracker.epochs_finished(), 1);
}

TEST(ProgressPrinter, WritesOverOneLineOnATerminal) {
  ProgressPrinter printer(60);
  const TimePoint start{};
  EXPECT_EQ(printer.update(midway(), start), "\r\x1b[Kepoch 2/3  step 312/468  loss 0.1234  ETA 12 s");
  EXPECT_EQ(printer.update(midway(), start + milliseconds(99)), "");
  EXPECT_NE(printer.update(midway(), start + milliseconds(100)), "");
  EXPECT_EQ(printer.interrupt(), "\n");
  EXPECT_EQ(printer.interrupt(), "");
  EXPECT_THAT(printer.epoch_finished(midway(), start), HasSubstr("ETA 12 s\n"));
}

TEST(ProgressPrinter, CutsOffWhatFitsInNoWay) {
  ProgressPrinter printer(12);
  EXPECT_EQ(printer.update(midway(), TimePoint()), "\r\x1b[Kloss 0.1234") << "one column is left free";
}

TEST(ProgressPrinter, PrintsALineNowAndThenWhereThereIsNoTerminal) {
  ProgressPrinter printer(0);
  const TimePoint start{};
  const std::string line = to_text(midway(), 80) + "\n";
  EXPECT_EQ(printer.update(midway(), start), "");
  EXPECT_EQ(printer.epoch_finished(midway(), start + milliseconds(6000)), line);
  EXPECT_EQ(printer.update(midway(), start + milliseconds(15999)), "") << "ten seconds after the last line";
  EXPECT_EQ(printer.update(midway(), start + milliseconds(16000)), line);
  EXPECT_EQ(printer.update(midway(), start + milliseconds(25999)), "");
  EXPECT_EQ(printer.update(midway(), start + milliseconds(26000)), line);
  EXPECT_EQ(printer.interrupt(), "");
}

}  // namespace
}  // namespace syncopate::experiments
