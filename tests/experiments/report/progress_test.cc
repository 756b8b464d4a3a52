#include "experiments/report/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/report/format.h"

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

TEST(Progress, ReadsInOneLine) {
  EXPECT_EQ(to_text(midway()),
            "epoch 2/3  step 312/468  41,250 samples/s  1.55 ms/step  loss 0.1234  accuracy 0.9650  ETA 12 s");
}

TEST(ProgressTracker, CountsWhatAllWorkersHaveFinished) {
  ProgressTracker tracker(2, 5, 10);
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
  EXPECT_EQ(progress.seconds_left, 0.05);
}

TEST(ProgressTracker, MeasuresTheLastTwoSecondsOnly) {
  ProgressTracker tracker(1, 100, 100);
  tracker.add(0, step_of(0, milliseconds(1000), milliseconds(1000)));
  tracker.add(0, step_of(1, milliseconds(3500), milliseconds(500)));
  EXPECT_EQ(tracker.progress().step_ms, 500);
  EXPECT_EQ(tracker.progress().samples_per_second, 128);
}

TEST(ProgressTracker, GoesOnWithoutALostWorker) {
  ProgressTracker tracker(2, 1, 3);
  tracker.add(0, step_of(0, milliseconds(10), milliseconds(10)));
  EXPECT_EQ(tracker.epochs_finished(), 0);
  tracker.worker_lost(1);
  EXPECT_EQ(tracker.epochs_finished(), 1);
}

TEST(ProgressPrinter, WritesOverOneLineOnATerminal) {
  ProgressPrinter printer(40);
  const TimePoint start{};
  const std::string first = printer.update(midway(), start);
  EXPECT_EQ(first, "\r\x1b[Kepoch 2/3  step 312/468  41,250 samples") << "one column is left free";
  EXPECT_EQ(printer.update(midway(), start + milliseconds(99)), "");
  EXPECT_NE(printer.update(midway(), start + milliseconds(100)), "");
  EXPECT_EQ(printer.interrupt(), "\n");
  EXPECT_EQ(printer.interrupt(), "");
  EXPECT_THAT(printer.epoch_finished(midway()), HasSubstr("ETA 12 s\n"));
}

TEST(ProgressPrinter, IsQuietWhereThereIsNoTerminal) {
  ProgressPrinter printer(0);
  EXPECT_EQ(printer.update(midway(), TimePoint()), "");
  EXPECT_EQ(printer.epoch_finished(midway()), to_text(midway()) + "\n");
  EXPECT_EQ(printer.interrupt(), "");
}

}  // namespace
}  // namespace syncopate::experiments
