#include "common/step_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <utility>

namespace syncopate {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

TimePoint at(int milliseconds) { return TimePoint(std::chrono::milliseconds(milliseconds)); }

StepRecord some_step(std::int64_t number) {
  using std::chrono::microseconds;
  return {.step = number,
          .epoch = 1,
          .end = at(static_cast<int>(10 * number)),
          .total = microseconds(900),
          .data = microseconds(10),
          .forward = microseconds(200),
          .backward = microseconds(300),
          .straggle = microseconds(5),
          .core_wait = number % 2 == 0 ? std::optional<Duration>(microseconds(30)) : std::nullopt,
          .compute_core_wait = microseconds(12),
          .sync = {.exposed_wait = microseconds(100),
                   .forward_wait = microseconds(7),
                   .communication = microseconds(150),
                   .optimizer = microseconds(20),
                   .codec = microseconds(8),
                   .backward_codec = microseconds(3),
                   .bytes_out = 4000,
                   .bytes_in = 4001,
                   .staleness_mean = 1.5,
                   .staleness_max = 3,
                   .dropped = 0.25,
                   .last_shard = 2,
                   .last_shard_alone = microseconds(11)},
          .samples = 64,
          .loss = 0.5,
          .accuracy = kUnknown};
}

class StepFileTest : public testing::Test {
 protected:
  StepFileTest() : folder_(testing::TempDir() + "step-file-XXXXXX") { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  ~StepFileTest() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/worker-0.steps"; }
  std::string content() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void put(const std::string& content) const { std::ofstream(path(), std::ios::binary) << content; }

  StepFileWriter new_writer() const {
    Result<StepFileWriter> writer = StepFileWriter::create(path());
    EXPECT_TRUE(writer.ok());
    return std::move(*writer);
  }

  std::string folder_;
};

// Returns what is new in a file that can be read.
std::vector<StepFileEntry> new_in(StepFileReader& reader) {
  Result<std::vector<StepFileEntry>> entries = reader.read();
  EXPECT_TRUE(entries.ok()) << entries.status().message();
  return entries.ok() ? std::move(*entries) : std::vector<StepFileEntry>();
};

TEST_F(StepFileTest, WhatIsWrittenIsReadBackWhole) {
  StepFileWriter writer = new_writer();
  writer.add(ToldFact{"parameters", "101770"}, at(0));
  writer.add(some_step(4), at(1));
  writer.add(ToldEvaluation{.step = 5, .taken = at(40), .loss = 0.1, .accuracy = kUnknown, .epoch = 2}, at(2));
  const ToldServer server{.server = 1,
                          .figures = {.updates = 2,
                                      .pushes = 3,
                                      .dropped = 4,
                                      .busy = Duration(5),
                                      .serving = Duration(6),
                                      .bytes_in = 7,
                                      .bytes_out = 8,
                                      .core_wait = Duration(9)}};
  writer.add(server, at(2));
  writer.add(ToldServer{}, at(2));
  ASSERT_TRUE(writer.flush().ok());

  StepFileReader reader(path());
  const std::vector<StepFileEntry> entries = new_in(reader);
  ASSERT_THAT(entries, SizeIs(5));
  EXPECT_EQ(std::get<ToldServer>(entries[3]), server);
  EXPECT_EQ(std::get<ToldServer>(entries[4]), ToldServer());
  EXPECT_EQ(std::get<ToldFact>(entries[0]).name, "parameters");
  EXPECT_EQ(std::get<ToldFact>(entries[0]).value, "101770");
  const StepRecord expected = some_step(4);
  const auto& step = std::get<StepRecord>(entries[1]);
  EXPECT_EQ(step.step, expected.step);
  EXPECT_EQ(step.epoch, expected.epoch);
  EXPECT_EQ(step.end, expected.end);
  EXPECT_EQ(step.total, expected.total);
  EXPECT_EQ(step.data, expected.data);
  EXPECT_EQ(step.forward, expected.forward);
  EXPECT_EQ(step.backward, expected.backward);
  EXPECT_EQ(step.straggle, expected.straggle);
  EXPECT_EQ(step.core_wait, expected.core_wait);
  EXPECT_EQ(step.compute_core_wait, expected.compute_core_wait);
  EXPECT_EQ(step.sync.exposed_wait, expected.sync.exposed_wait);
  EXPECT_EQ(step.sync.forward_wait, expected.sync.forward_wait);
  EXPECT_EQ(step.sync.communication, expected.sync.communication);
  EXPECT_EQ(step.sync.optimizer, expected.sync.optimizer);
  EXPECT_EQ(step.sync.codec, expected.sync.codec);
  EXPECT_EQ(step.sync.backward_codec, expected.sync.backward_codec);
  EXPECT_EQ(step.sync.bytes_out, expected.sync.bytes_out);
  EXPECT_EQ(step.sync.bytes_in, expected.sync.bytes_in);
  EXPECT_EQ(step.sync.staleness_mean, expected.sync.staleness_mean);
  EXPECT_EQ(step.sync.staleness_max, expected.sync.staleness_max);
  EXPECT_EQ(step.sync.dropped, expected.sync.dropped);
  EXPECT_EQ(step.sync.last_shard, expected.sync.last_shard);
  EXPECT_EQ(step.sync.last_shard_alone, expected.sync.last_shard_alone);
  EXPECT_EQ(step.samples, expected.samples);
  EXPECT_EQ(step.loss, expected.loss);
  EXPECT_TRUE(std::isnan(step.accuracy));
  const auto& told = std::get<ToldEvaluation>(entries[2]);
  EXPECT_EQ(told.step, 5);
  EXPECT_EQ(told.taken, at(40));
  EXPECT_EQ(told.loss, 0.1);
  EXPECT_TRUE(std::isnan(told.accuracy));
  EXPECT_EQ(told.epoch, 2);
  EXPECT_THAT(new_in(reader), SizeIs(0));
}

TEST_F(StepFileTest, EntriesAreReadAsTheyAreAdded) {
  StepFileReader reader(path());
  EXPECT_THAT(new_in(reader), SizeIs(0)) << "the file is not there yet";
  StepFileWriter writer = new_writer();
  std::size_t read = 0;
  for (int step = 0; step < 1000; ++step) {
    writer.add(some_step(step), at(step));
    for (const StepFileEntry& entry : new_in(reader)) {
      EXPECT_EQ(std::get<StepRecord>(entry).step, static_cast<std::int64_t>(read++));
    }
  }
  EXPECT_GE(read, 800u) << "at least once every 200 ms";
  ASSERT_TRUE(writer.flush().ok());
  EXPECT_EQ(read + new_in(reader).size(), 1000u);
}

TEST_F(StepFileTest, ATraceIsReadBackHoweverLong) {
  ToldTrace told{.server = 1, .events = {}, .dropped = 7};
  for (int number = 0; number < 1000; ++number) {
    told.events.push_back({.kind = TraceKind::kPushTaken,
                           .membership = 2,
                           .shard = 1,
                           .peer = -1,
                           .item = number,
                           .number = number,
                           .value = 3,
                           .bytes = 4096,
                           .begin = at(number),
                           .end = at(number + 1)});
  }
  Result<StepFileWriter> writer = StepFileWriter::create(path());
  writer->add(told, at(0));
  ASSERT_TRUE(writer->flush().ok());
  ToldTrace read{.server = 1, .events = {}, .dropped = 0};
  const Result<std::vector<StepFileEntry>> entries = StepFileReader(path()).read();
  ASSERT_TRUE(entries.ok()) << entries.status().message();
  for (const StepFileEntry& entry : *entries) {
    const auto& part = std::get<ToldTrace>(entry);
    EXPECT_EQ(part.server, 1);
    read.events.insert(read.events.end(), part.events.begin(), part.events.end());
    read.dropped += part.dropped;
  }
  EXPECT_EQ(read, told);
}

TEST_F(StepFileTest, EventsThatNobodyRecordsAreNoTrace) {
  const TraceEvent backwards{.begin = at(2), .end = at(1)};
  const TraceEvent unknown{.kind = static_cast<TraceKind>(static_cast<int>(kLastTraceKind) + 1)};
  for (const TraceEvent& event : {backwards, unknown}) {
    Result<StepFileWriter> writer = StepFileWriter::create(path());
    writer->add(ToldTrace{.server = -1, .events = {event}, .dropped = 0}, at(0));
    ASSERT_TRUE(writer->flush().ok());
    EXPECT_THAT(StepFileReader(path()).read().status().message(), HasSubstr("none that a process records"));
  }
}

TEST_F(StepFileTest, AnEntryThatAKillHasCutIsLeftOut) {
  {
    StepFileWriter writer = new_writer();
    for (int step = 0; step < 3; ++step) writer.add(some_step(step), at(0));
  }
  const std::string whole = content();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    put(whole.substr(0, size));
    StepFileReader reader(path());
    const Result<std::vector<StepFileEntry>> entries = reader.read();
    ASSERT_TRUE(entries.ok()) << size << ": " << entries.status().message();
    EXPECT_LT(entries->size(), 3u);
  }
}

TEST_F(StepFileTest, ForeignFilesAreNamed) {
  new_writer().add(some_step(0), at(0));
  const std::string whole = content();
  std::string huge = whole, unknown = whole, wrong = whole;
  huge[sizeof("syncopate-steps-2\n") - 1 + 6] = '\x7f';  // of the length
  unknown[sizeof("syncopate-steps-2\n") - 1] = '\x7f';   // of the kind
  wrong[sizeof("syncopate-steps-2\n") - 1] = '\x02';
  for (const std::string& text : {std::string("nothing of ours"), huge, unknown, wrong}) {
    put(text);
    const Status status = StepFileReader(path()).read().status();
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_THAT(status.message(), HasSubstr(path()));
  }
}

TEST_F(StepFileTest, AnotherVersionsFileIsSaidToBeThat) {
  put("syncopate-steps-1\n");
  EXPECT_THAT(StepFileReader(path()).read().status().message(), HasSubstr("another version"));
}

TEST_F(StepFileTest, NumbersThatCannotBeAreNoSteps) {
  for (const auto& spoil :
       {+[](StepRecord& step) { step.step = -2; }, +[](StepRecord& step) { step.total = Duration::max(); },
        +[](StepRecord& step) { step.samples = std::int64_t{1} << 60; }}) {
    StepRecord step = some_step(1);
    spoil(step);
    new_writer().add(step, at(0));
    EXPECT_THAT(StepFileReader(path()).read().status().message(), HasSubstr("a count or a time that cannot be"));
  }
}

// Times count from its start.
TEST_F(StepFileTest, AHostMayHaveBeenOnForYears) {
  const TimePoint now{std::chrono::hours(24 * 3000)};
  StepRecord step = some_step(1);
  step.end = now;
  {
    StepFileWriter writer = new_writer();
    writer.add(step, now);
    writer.add(ToldEvaluation{.step = 1, .taken = now}, now);
    writer.add(ToldTrace{.events = {{.begin = now, .end = now}}}, now);
  }
  const auto read = StepFileReader(path()).read();
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_THAT(*read, SizeIs(3));
  EXPECT_EQ(std::get<StepRecord>(read->front()).end, now);
}

TEST_F(StepFileTest, AFolderThatIsNotThereIsAnError) {
  const Status status = StepFileWriter::create(folder_ + "/none/steps").status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("/none/steps"));
}

}  // namespace
}  // namespace syncopate
