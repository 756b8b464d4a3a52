#include "experiments/lab/trace/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/run_program.h"
#include "tests/support/trace_check.h"

namespace syncopate::experiments {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing_support::check_trace;
using testing_support::CheckedTrace;
using testing_support::TemporaryFolder;
using testing_support::text_of;

constexpr TimePoint kOrigin = TimePoint(Duration(1000000));

TimePoint at(int time) { return kOrigin + Duration(time); }

// A push of worker 0 in its step 4, its update and its answer, of 1000 bytes each way.
std::vector<TraceEvent> of_worker() {
  const TraceEvent push{.shard = 0, .peer = 0, .item = 1, .number = 5, .bytes = 1000};
  std::vector<TraceEvent> events(5, push);
  events[0] = {.kind = TraceKind::kStep, .number = 4, .begin = at(0), .end = at(9000)};
  events[1] = {.kind = TraceKind::kBackward, .number = 4, .begin = at(500), .end = at(2000)};
  events[2].kind = TraceKind::kPush;
  events[2].begin = at(1000), events[2].end = at(1100);
  events[3] = {.kind = TraceKind::kSynchronise, .number = 4, .begin = at(2000), .end = at(9000)};
  events[4].kind = TraceKind::kAnswerTaken, events[4].value = 2;
  events[4].begin = at(7000), events[4].end = at(8000);
  return events;
}
std::vector<TraceEvent> of_server() {
  std::vector<TraceEvent> events(3, {.shard = 0, .peer = 0, .item = 1, .number = 5, .bytes = 1000});
  events[0].kind = TraceKind::kAnswerSent;
  events[0].begin = at(5000), events[0].end = at(5200);
  events[1].kind = TraceKind::kShardUpdate;
  events[1].begin = at(3000), events[1].end = at(4900);
  events[2].kind = TraceKind::kPushTaken;
  events[2].begin = at(3000), events[2].end = at(5300);
  return events;
}

json written(const TraceLog& log) {
  const TemporaryFolder folder;
  const Result<TraceFacts> facts = log.write(folder.path(), "trace.json", {.run = "r", .steps = {4, 4}}, kOrigin);
  EXPECT_TRUE(facts.ok());
  return json::parse(text_of(folder.path() / "trace.json"));
}

json sample() {
  TraceLog log;
  log.add("worker 0", of_worker(), 0);
  log.add("server 0", of_server(), 0);
  return written(log);
}

json* event_named(json& trace, const std::string& phase, const std::string& name) {
  for (json& event : trace["traceEvents"]) {
    if (event["ph"] == phase && event["name"] == name) return &event;
  }
  return nullptr;
}

TEST(TraceFile, ShowsEventsMessagesArrowsAndCurves) {
  const CheckedTrace checked = check_trace(sample());
  EXPECT_THAT(checked.faults, IsEmpty());
  EXPECT_EQ(checked.slices, (std::map<std::string, int>{{"phase", 3}, {"push", 5}, {"message", 2}}));
  EXPECT_EQ(checked.arrows, 1);
  EXPECT_EQ(checked.steps_of_arrows, 1);
  EXPECT_THAT(checked.processes, ElementsAre("server 0", "worker 0"));
  // A curve rises where a message is sent and falls where it is received.
  EXPECT_EQ(checked.counters, (std::map<std::string, int>{{"in", 4}, {"out", 4}, {"staleness", 1}}));
}

TEST(TraceFile, SaysWhenAndHowFast) {
  json trace = sample();
  const json* const push = event_named(trace, "X", "push of chunk 1");
  ASSERT_NE(push, nullptr);
  EXPECT_EQ((*push)["ts"], 1.0);
  EXPECT_EQ((*push)["dur"], 2.0);
  EXPECT_EQ((*push)["args"]["bytes"], 1000);
  const json* const out = event_named(trace, "C", "out");
  ASSERT_NE(out, nullptr);
  EXPECT_EQ((*out)["args"]["MB/s"], 500);  // 1000 bytes in 2 microseconds
  const json* const staleness = event_named(trace, "C", "staleness");
  ASSERT_NE(staleness, nullptr);
  EXPECT_EQ((*staleness)["args"]["updates"], 2);
}

TEST(TraceFile, CountsWhatDidNotFitAndSaysSoInThePicture) {
  TraceLog log;
  log.add("worker 0", of_worker(), 30);
  log.add("worker 0", {}, 4);
  json trace = written(log);
  EXPECT_EQ(trace["otherData"]["dropped"], 34);
  EXPECT_NE(event_named(trace, "i", "34 more events did not fit"), nullptr);
  EXPECT_THAT(check_trace(trace).faults, IsEmpty());
}

TEST(TraceFile, HasTimesBeforeItsOrigin) {
  TraceLog log;
  log.add("worker 0", std::vector{TraceEvent{.kind = TraceKind::kStep, .begin = at(-1001), .end = at(-1)}}, 0);
  json trace = written(log);
  EXPECT_EQ((*event_named(trace, "X", "step 0"))["ts"], -1.001);
}

TEST(TraceFile, PutsProcessesInOrder) {
  TraceLog log;
  for (const char* name : {"worker 10", "server 0", "worker 9", "worker 0"}) log.add(name, {}, 0);
  EXPECT_THAT(check_trace(written(log)).processes, ElementsAre("server 0", "worker 0", "worker 9", "worker 10"));
}

TEST(TraceFile, SaysWhereItCannotBeWritten) {
  const Result<TraceFacts> facts = TraceLog().write("/proc/nowhere", "trace.json", {}, kOrigin);
  EXPECT_EQ(facts.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(facts.status().message(), HasSubstr("/proc/nowhere"));
}

// The check itself notices each fault.

TEST(TraceCheck, NoticesOverlap) {
  json trace = sample();
  (*event_named(trace, "X", "backward"))["dur"] = 3.0;
  EXPECT_THAT(check_trace(trace).faults, ElementsAre(HasSubstr("does not lie within it")));
}

TEST(TraceCheck, NoticesAnArrowWithoutAnEnd) {
  json trace = sample();
  event_named(trace, "f", "push")->at("id") = 2;
  EXPECT_THAT(check_trace(trace).faults, Not(IsEmpty()));
}

TEST(TraceCheck, NoticesDisorder) {
  json trace = sample();
  (*event_named(trace, "X", "synchronise"))["ts"] = 0.5;
  EXPECT_THAT(check_trace(trace).faults, Contains(HasSubstr("stands behind")));
}

TEST(TraceCheck, NoticesWhatIsNotCounted) {
  json trace = sample();
  trace["otherData"]["dropped"] = 1;
  trace["otherData"]["events"] = 9;
  EXPECT_THAT(check_trace(trace).faults, testing::SizeIs(2));
}

}  // namespace
}  // namespace syncopate::experiments
