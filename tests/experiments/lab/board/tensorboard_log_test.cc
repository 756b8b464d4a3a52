#include "experiments/lab/board/tensorboard_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "common/os/whole_file.h"
#include "common/text/hex_text.h"
#include "tests/experiments/lab/board/golden_events.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing_support::text_of;
using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""s;

constexpr TimePoint kLogBegin{100s};
constexpr double kWall = 1'700'000'000;

// The events of a file, whose framing must be right.
std::vector<board::Event> events_in(const std::string& file) {
  std::vector<board::Event> events;
  std::string bytes = text_of(file);
  while (!bytes.empty()) {
    board::Event event;
    const std::size_t size = static_cast<unsigned char>(bytes[0]) + 256u * static_cast<unsigned char>(bytes[1]);
    EXPECT_TRUE(event.ParseFromString(bytes.substr(12, size)));
    EXPECT_EQ(bytes.substr(0, 16 + size), event_record(event));
    bytes.erase(0, 16 + size);
    events.push_back(event);
  }
  return events;
}

// The values of a tag, by step.
std::vector<std::pair<std::int64_t, float>> curve_of(const std::vector<board::Event>& events, const std::string& tag) {
  std::vector<std::pair<std::int64_t, float>> curve;
  for (const board::Event& event : events) {
    for (const auto& value : event.summary().value()) {
      if (value.tag() == tag) curve.emplace_back(event.step(), value.simple_value());
    }
  }
  return curve;
}

StepRecord logged_step(std::int64_t step, int workers, Duration end, double loss) {
  StepRecord record;
  record.step = step;
  record.position = step * workers;
  record.end = kLogBegin + end;
  record.total = 500ms;
  record.samples = 32;
  record.loss = loss;
  record.accuracy = 0.5;
  record.sync.staleness_mean = static_cast<double>(step);
  return record;
}

class TensorBoardLogTest : public testing::Test {
 protected:
  TensorBoardLog make() {
    Result<TensorBoardLog> log = TensorBoardLog::create(job_);
    EXPECT_TRUE(log.ok()) << log.status().message();
    log->begin(kLogBegin);
    return std::move(*log);
  }
  std::string file(const std::string& part) const {
    return job_.folder + "/" + part + "/events.out.tfevents.1700000000.here";
  }

  testing_support::TemporaryFolder folder_;
  TensorBoardLog::Job job_{.folder = folder_.path() / "tensorboard",
                           .wall_clock = [] { return kWall; },
                           .host = "here",
                           .text = "ps async, **2** workers",
                           .workers = 2,
                           .total_steps = 4,
                           .holds_out = true,
                           .has_staleness = true};
};

// The log of a small run, byte by byte as TensorBoard 2.21.0 has read it.
TEST_F(TensorBoardLogTest, WritesTheBytesThatTensorBoardHasRead) {
  TensorBoardLog log = make();
  for (std::int64_t step = 0; step < 4; ++step) {
    for (int worker : {0, 1})
      log.add(worker, logged_step(step, 2, (step + 1) * 500ms + worker * 1ms, 2.0 - 0.5 * static_cast<double>(step)));
  }
  log.add(EvalRecord{.epoch = 1,
                     .step = 4,
                     .training_seconds = 2,
                     .accuracy = 0.875,
                     .loss = 0.625,
                     .validation = {{.accuracy = 0.75, .loss = 0.5}},
                     .train_loss = 1.25,
                     .train_accuracy = 0.5});
  ASSERT_TRUE(log.end().ok());
  for (const auto& [part, golden] : kGoldenEvents) {
    const std::string bytes = text_of(file(part));
    EXPECT_EQ(to_hex(std::as_bytes(std::span(bytes))), golden) << part;
  }
}

TEST_F(TensorBoardLogTest, DrawsTrainingTestAndValidationInFoldersOfTheirOwnUnderTheSameNames) {
  TensorBoardLog log = make();
  log.add(EvalRecord{.epoch = 0.5,
                     .step = 2,
                     .training_seconds = 1.5,
                     .accuracy = 0.875,
                     .loss = 0.625,
                     .figures = {.auc = {}, .hit_rate = 0.25, .ndcg = {}},
                     .validation = {{.accuracy = 0.75, .loss = 0.5}},
                     .train_loss = 1.25,
                     .train_accuracy = 0.5});
  ASSERT_TRUE(log.end().ok());
  const auto point = [](float value) { return ElementsAre(std::pair<std::int64_t, float>(2, value)); };
  EXPECT_THAT(curve_of(events_in(file("train")), "epoch_loss"), point(1.25));
  EXPECT_THAT(curve_of(events_in(file("train")), "epoch_accuracy"), point(0.5));
  EXPECT_THAT(curve_of(events_in(file("validation")), "epoch_loss"), point(0.5));
  EXPECT_THAT(curve_of(events_in(file("validation")), "epoch_accuracy"), point(0.75));
  EXPECT_THAT(curve_of(events_in(file("validation")), "epoch_hr10"), IsEmpty());
  EXPECT_THAT(curve_of(events_in(file("test")), "epoch_loss"), point(0.625));
  EXPECT_THAT(curve_of(events_in(file("test")), "epoch_hr10"), point(0.25));
  EXPECT_EQ(events_in(file("test")).back().wall_time(), kWall + 1.5);
}

TEST_F(TensorBoardLogTest, WaitsForTheStepsOfAllWorkersAndDrawsThemInOrder) {
  TensorBoardLog log = make();
  for (std::int64_t step = 0; step < 4; ++step) log.add(0, logged_step(step, 2, (step + 1) * 500ms, 1));
  ASSERT_TRUE(log.tick(kLogBegin + 1100ms, kLogBegin + 100ms).ok());
  EXPECT_THAT(curve_of(events_in(file("train")), "batch_loss"), IsEmpty()) << "worker 1 may not have said all";
  for (std::int64_t step = 0; step < 4; ++step) log.add(1, logged_step(step, 2, (step + 1) * 500ms + 1ms, 3));
  ASSERT_TRUE(log.tick(kLogBegin + 3s, kLogBegin + 1100ms).ok());
  EXPECT_THAT(curve_of(events_in(file("train")), "batch_loss"),
              ElementsAre(std::pair<std::int64_t, float>(1, 2), std::pair<std::int64_t, float>(2, 2)));
  ASSERT_TRUE(log.end().ok());
  EXPECT_EQ(curve_of(events_in(file("train")), "batch_loss").size(), 4u);
}

TEST_F(TensorBoardLogTest, IsOnTheDiskAboutASecondLater) {
  TensorBoardLog log = make();
  ASSERT_TRUE(log.tick(kLogBegin, kLogBegin - 1s).ok());
  const auto before = fs::file_size(file("train"));
  for (int worker : {0, 1}) log.add(worker, logged_step(0, 2, 500ms, 1));
  ASSERT_TRUE(log.tick(kLogBegin + 900ms, kLogBegin + 600ms).ok());
  EXPECT_EQ(fs::file_size(file("train")), before);
  ASSERT_TRUE(log.tick(kLogBegin + 1s, kLogBegin + 600ms).ok());
  EXPECT_GT(fs::file_size(file("train")), before);
}

TEST_F(TensorBoardLogTest, HasNoLossesOfWhatLearnsNothingAndNoStalenessWhereNothingIsStale) {
  job_.learns = job_.holds_out = job_.has_staleness = false;
  TensorBoardLog log = make();
  for (int worker : {0, 1}) log.add(worker, logged_step(0, 2, 500ms, 1));
  ASSERT_TRUE(log.end().ok());
  const std::vector<board::Event> events = events_in(file("train"));
  EXPECT_THAT(curve_of(events, "batch_loss"), IsEmpty());
  EXPECT_THAT(curve_of(events, "staleness/mean"), IsEmpty());
  EXPECT_EQ(curve_of(events, "throughput/samples_per_second").size(), 1u);
  EXPECT_FALSE(fs::exists(job_.folder + "/test"));
  EXPECT_FALSE(fs::exists(job_.folder + "/validation"));
}

TEST_F(TensorBoardLogTest, HasALineAtTheStepInWhichSomethingWasNotFinite) {
  TensorBoardLog log = make();
  log.not_finite(7, "step 7: on worker 0 the loss is nan");
  ASSERT_TRUE(log.end().ok());
  const std::vector<board::Event> events = events_in(file("train"));
  ASSERT_EQ(curve_of(events, "not_finite").size(), 1u);
  EXPECT_EQ(curve_of(events, "not_finite")[0].first, 7);
  EXPECT_THAT(events.back().SerializeAsString(), testing::HasSubstr("step 7: on worker 0 the loss is nan"));
}

TEST_F(TensorBoardLogTest, SaysWhereItCannotWrite) {
  ASSERT_TRUE(write_whole_file(job_.folder, std::string_view("a file in the folder's place")).ok());
  const Status status = TensorBoardLog::create(job_).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), testing::HasSubstr("tensorboard"));
}

}  // namespace
}  // namespace syncopate::experiments
