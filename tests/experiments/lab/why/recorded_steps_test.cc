#include "experiments/lab/why/recorded_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/step_fields.h"
#include "experiments/lab/report/results_writer.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

constexpr Duration kMs = std::chrono::milliseconds(1);

StepRecord record() {
  StepRecord step;
  step.step = 7;
  step.end = TimePoint() + 1500 * kMs;
  step.total = 20 * kMs;
  step.data = 1 * kMs;
  step.forward = 2 * kMs;
  step.backward = 3 * kMs;
  step.straggle = 4 * kMs;
  step.sync.exposed_wait = 5 * kMs;
  step.sync.optimizer = 6 * kMs;
  step.sync.communication = 7 * kMs;
  step.sync.codec = 8 * kMs;
  step.sync.copy = 13 * kMs;
  step.launch = 14 * kMs;
  step.epoch = 2;
  step.position = 15;
  step.sync.staleness_mean = 1.5;
  step.sync.staleness_max = 3;
  step.accuracy = 0.25;
  step.sync.backward_codec = 9 * kMs;
  step.sync.bytes_out = 1000;
  step.sync.bytes_in = 2000;
  step.sync.dropped = 0.25;
  step.sync.last_shard = 3;
  step.sync.last_shard_alone = 10 * kMs;
  step.core_wait = 11 * kMs;
  step.compute_core_wait = 12 * kMs;
  step.samples = 64;
  step.loss = 0.5;
  return step;
}

TEST(RecordedSteps, AreReadAsTheyWereWritten) {
  const auto steps = read_steps(steps_csv_header() + steps_csv_row(0, 1, TimePoint(), record()), 0);
  ASSERT_TRUE(steps.ok()) << steps.status().message();
  ASSERT_THAT(steps->of_workers, ElementsAre(Pair(1, SizeIs(1))));
  for (const StepField& field : step_fields()) {
    if (field.column != nullptr) EXPECT_EQ(field.get(steps->of_workers.at(1)[0]), field.get(record())) << field.column;
  }
}

TEST(RecordedSteps, SayWhatIsNotKnown) {
  StepRecord step = record();
  step.core_wait.reset();
  step.sync.last_shard = -1;
  const auto rows = read_steps(steps_csv_header() + steps_csv_row(0, 1, TimePoint(), step), 0);
  ASSERT_TRUE(rows.ok());
  EXPECT_FALSE(rows->of_workers.at(1)[0].core_wait.has_value());
  EXPECT_EQ(rows->of_workers.at(1)[0].sync.last_shard, -1);
}

TEST(RecordedSteps, AreOfOneRepeat) {
  const std::string csv =
      steps_csv_header() + steps_csv_row(0, 1, TimePoint(), record()) + steps_csv_row(1, 2, TimePoint(), record());
  EXPECT_THAT(read_steps(csv, 1)->of_workers, ElementsAre(Pair(2, SizeIs(1))));
  EXPECT_EQ(read_steps(csv, 2)->count(), 0);
}

// The columns that there were before this record had more.
TEST(RecordedSteps, AreReadFromOlderRuns) {
  const auto rows = read_steps(
      "repeat,worker,step,epoch,position,end_s,total_us,data_us,forward_us,backward_us,straggle_us,exposed_wait_us,"
      "optimizer_us,communication_us,codec_us,copy_us,launch_us,bytes_out,bytes_in,staleness_mean,staleness_max,"
      "dropped,samples,loss\n0,1,2,0,2,0.5,100,1,2,3,0,4,5,6,0,0,0,7,8,0,0,0,64,nan\n",
      0);
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  const StepRecord& step = rows->of_workers.at(1)[0];
  EXPECT_EQ(step.total, std::chrono::microseconds(100));
  EXPECT_FALSE(step.core_wait.has_value());
  EXPECT_EQ(step.sync.last_shard, -1);
  EXPECT_TRUE(std::isnan(step.loss)) << "a run that has diverged";
}

TEST(RecordedSteps, AreRefusedWhereTheFileIsNotWhole) {
  const std::string header = steps_csv_header(), row = steps_csv_row(0, 1, TimePoint(), record());
  const auto refusal = [](const std::string& csv) { return read_steps(csv, 0).status().message(); };
  EXPECT_EQ(refusal("repeat,step\n"), "has no column worker");
  EXPECT_EQ(refusal(""), "is empty");
  EXPECT_THAT(refusal(header + row + "0,1,2\n"), HasSubstr("line 3 is no step"));
  EXPECT_EQ(refusal(header + row + row.substr(0, row.size() / 2)),
            "its last line, 3, is cut off, as where the run was killed or the disk was full; delete that line, and the "
            "steps before it are read");
  EXPECT_THAT(refusal(header + row.substr(0, row.size() - 1)), HasSubstr("its last line, 2, is cut off"));
  std::string words = row;
  words.replace(words.find("20000.0"), 7, "a while");
  EXPECT_EQ(refusal(header + words), "line 2 is no step, or not whole: total_us cannot be 'a while'");
  for (const char* const no_time : {"inf", "1e300", "-1e300"}) {
    std::string wrong = words;
    wrong.replace(wrong.find("a while"), 7, no_time);
    EXPECT_THAT(refusal(header + wrong), HasSubstr("line 2 is no step")) << no_time;
  }
}

TEST(RecordedSteps, AreOrderedByTheirEnds) {
  StepRecord early = record();
  early.end -= kMs;
  const RecordedSteps steps{{{0, {record()}}, {1, {early, record()}}}};
  std::vector<int> workers;
  for (const StepOfWorker& each : steps.by_end()) workers.push_back(each.worker);
  EXPECT_THAT(workers, ElementsAre(1, 0, 1));
  EXPECT_EQ(steps.count(), 3);
}

}  // namespace
}  // namespace syncopate::experiments
