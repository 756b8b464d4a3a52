#include "experiments/cluster/control/packed_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/random.h"
#include "experiments/cluster/control/control.pb.h"
#include "experiments/cluster/control/control_thread.h"

namespace syncopate::experiments {
namespace {

using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""s;

// All that travels of a step, as text.
std::string text_of(const SentStep& step) {
  const StepRecord& r = step.record;
  std::string text;
  for (const std::int64_t value : {step.membership_epoch,
                                   r.step,
                                   r.epoch,
                                   r.position,
                                   std::int64_t{r.end.time_since_epoch().count()},
                                   std::int64_t{r.total.count()},
                                   std::int64_t{r.data.count()},
                                   std::int64_t{r.forward.count()},
                                   std::int64_t{r.backward.count()},
                                   std::int64_t{r.straggle.count()},
                                   std::int64_t{r.launch.count()},
                                   std::int64_t{r.core_wait ? r.core_wait->count() : -1},
                                   std::int64_t{r.compute_core_wait.count()},
                                   r.samples,
                                   std::int64_t{r.sync.exposed_wait.count()},
                                   std::int64_t{r.sync.communication.count()},
                                   std::int64_t{r.sync.optimizer.count()},
                                   std::int64_t{r.sync.codec.count()},
                                   std::int64_t{r.sync.backward_codec.count()},
                                   std::int64_t{r.sync.copy.count()},
                                   r.sync.bytes_out,
                                   r.sync.bytes_in,
                                   r.sync.staleness_max,
                                   std::int64_t{r.sync.last_shard},
                                   std::int64_t{r.sync.last_shard_alone.count()},
                                   std::bit_cast<std::int64_t>(r.loss),
                                   std::bit_cast<std::int64_t>(r.accuracy),
                                   std::bit_cast<std::int64_t>(r.sync.staleness_mean),
                                   std::bit_cast<std::int64_t>(r.sync.dropped)}) {
    text += std::to_string(value) + " ";
  }
  return text;
}

std::vector<std::string> texts_of(const std::vector<SentStep>& steps) {
  std::vector<std::string> texts;
  for (const SentStep& step : steps) texts.push_back(text_of(step));
  return texts;
}

void expect_comes_back(const std::vector<SentStep>& steps) {
  const Result<std::vector<SentStep>> read = unpack_steps(pack_steps(steps));
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(texts_of(*read), texts_of(steps));
}

// Steps of a worker as they are measured: each part within a tenth of its mean, to the nanosecond.
std::vector<SentStep> measured_steps(std::int64_t count, Duration length, std::uint64_t seed) {
  Random random(seed);
  const auto about = [&](double part) {
    return Duration(std::llround(part * static_cast<double>(length.count()) * random.uniform(0.9, 1.1)));
  };
  std::vector<SentStep> steps;
  TimePoint end(std::chrono::hours(5));
  for (std::int64_t i = 0; i < count; ++i) {
    StepRecord r{.step = 1000 + i, .epoch = 2, .position = 512 * (1000 + i)};
    r.data = about(0.001), r.forward = about(0.2), r.backward = about(0.35), r.core_wait = about(0.01);
    r.compute_core_wait = about(0.005), r.samples = 64;
    r.loss = random.uniform(0.1, 2.3), r.accuracy = static_cast<double>(random.below(65)) / 64;
    r.sync = {.exposed_wait = about(0.4), .communication = about(0.5), .optimizer = about(0.02)};
    r.sync.bytes_out = r.sync.bytes_in = 1'628'224;
    r.total = r.data + r.forward + r.backward + r.sync.exposed_wait + r.sync.optimizer + about(0.001);
    r.end = end += r.total;
    steps.push_back({r, 3});
  }
  return steps;
}

TEST(PackedSteps, ComeBackAsTheyWere) {
  expect_comes_back({});
  expect_comes_back({SentStep{}});
  for (const std::int64_t count : {1, 2, 3, 100, 5000}) expect_comes_back(measured_steps(count, 20ms, 7));
}

TEST(PackedSteps, ComeBackWithTheMostExtremeValues) {
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min(), kMost = std::numeric_limits<std::int64_t>::max();
  std::vector<SentStep> steps(4);
  steps[0].record = {.step = kMost, .epoch = kLeast, .end = TimePoint(Duration(kLeast)), .total = Duration(kMost)};
  steps[1].record = {.step = kLeast, .epoch = kMost, .end = TimePoint(Duration(kMost)), .total = Duration(kLeast)};
  steps[1].record.core_wait = Duration(kMost);
  steps[2].record.loss = std::numeric_limits<double>::quiet_NaN();
  steps[2].record.accuracy = -0.0;
  steps[2].record.sync.last_shard = std::numeric_limits<int>::min();
  steps[3].record.loss = std::numeric_limits<double>::infinity();
  steps[3].record.forward = steps[3].record.backward = Duration(kMost);
  expect_comes_back(steps);
}

TEST(PackedSteps, AreRefusedIfTheTextIsCutLongerOrOfTooMany) {
  const std::string text = pack_steps(measured_steps(20, 20ms, 3));
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_EQ(unpack_steps(std::string_view(text).substr(0, size)).status().code(), Code::kDataLoss) << size;
  }
  EXPECT_FALSE(unpack_steps(text + '\0').ok());
  EXPECT_TRUE(unpack_steps(pack_steps(std::vector<SentStep>(kMostPackedSteps))).ok());
  EXPECT_FALSE(unpack_steps(pack_steps(std::vector<SentStep>(kMostPackedSteps + 1))).ok());
}

// Bytes a second on the coordinator's link, both ways summed, of a run of so many workers on other hosts: what the
// control protocol says in a second and what carries it.
double bytes_a_second(int workers, Duration step) {
  constexpr double kOfAMessage = 33 + 9;  // CURVE's MESSAGE command, a frame's header
  constexpr double kOfASegment = 66;      // Ethernet, IPv4 and TCP with time stamps
  control::ToCoordinator heartbeat, question, report;
  heartbeat.mutable_heartbeat()->set_operation("waiting for gradients");
  heartbeat.mutable_heartbeat()->set_step(1'000'000);
  heartbeat.mutable_heartbeat()->mutable_collective()->set_what("step 1000000, bucket 3 of 9 (all_reduce, 1.05 MB)");
  heartbeat.mutable_heartbeat()->mutable_collective()->set_begun(1 << 30);
  heartbeat.mutable_heartbeat()->mutable_collective()->set_age(1'000'000'000);
  question.mutable_clock_question()->set_sent(std::int64_t{1} << 60);
  report.mutable_clock_report()->set_offset(std::int64_t{1} << 60);
  report.mutable_clock_report()->set_uncertainty(100'000);
  control::FromCoordinator alive, answer;
  alive.mutable_alive();
  answer.mutable_clock_answer()->set_sent(std::int64_t{1} << 60);
  answer.mutable_clock_answer()->set_received(std::int64_t{1} << 60);
  answer.mutable_clock_answer()->set_answered(std::int64_t{1} << 60);

  double beat = 0;  // three segments there, with an acknowledgement each, as there are two back
  for (const auto* message : {&heartbeat, &question, &report}) {
    beat += static_cast<double>(message->ByteSizeLong()) + kOfAMessage + 2 * kOfASegment;
  }
  for (const auto* message : {&alive, &answer}) {
    beat += static_cast<double>(message->ByteSizeLong()) + kOfAMessage + 2 * kOfASegment;
  }
  const Duration every = records_interval(workers);
  const auto steps = std::max<std::int64_t>(1, every / step);
  const double packed = static_cast<double>(pack_steps(measured_steps(steps, step, 5)).size());
  const double segments = std::ceil(packed / 1448);
  const double records = packed + kOfAMessage + 2 * kOfASegment * segments;
  const double records_a_second = 1 / seconds(std::max<Duration>(every, step));
  return workers * (beat / seconds(heartbeat_interval(30s)) + records * records_a_second);
}

// 1 % of a link of 1 Gb/s.
constexpr double kBudget = 1.25e6;

TEST(ControlTraffic, StaysBelowAHundredthOfALinkOfOneGigabitAtFiveHundredAndTwelveWorkers) {
  for (const Duration step : {Duration(1s), Duration(100ms), Duration(50ms), Duration(40ms)}) {
    EXPECT_LT(bytes_a_second(512, step), kBudget) << step / 1ms << " ms";
  }
}

// What a step takes is what limits how short steps may be.
TEST(ControlTraffic, OfAStepIsFortyBytesAtMost) {
  for (const Duration step : {Duration(5ms), Duration(20ms), Duration(100ms)}) {
    EXPECT_LT(pack_steps(measured_steps(1000, step, 5)).size(), 40'000u) << step / 1ms << " ms";
  }
}

}  // namespace
}  // namespace syncopate::experiments
