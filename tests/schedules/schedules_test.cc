// Thousands of drawn schedules: small jobs in every mode, in a simulated cluster, and what happens to them. Each ends
// in success or in a verdict, keeps its promises, and goes alike when it is repeated.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/text/number.h"
#include "tests/schedules/broken_promises.h"
#include "tests/schedules/drawn_schedule.h"
#include "tests/schedules/fault_outlook.h"
#include "tests/schedules/last_words.h"
#include "tests/schedules/schedule_run.h"
#include "tests/support/slowness.h"

namespace syncopate::experiments {
namespace {

constexpr std::uint64_t kShards = 16;  // what is lost with a killed process stays in memory until a shard ends
constexpr std::uint64_t kSchedules = testing_support::kSanitized ? 160 : 10000;
constexpr std::uint64_t kRepeatedEvery = 20;
constexpr std::size_t kMostFailures = 5;  // of a shard: what breaks many need not be said as often
constexpr Duration kLimitOfAShard = std::chrono::seconds(240);

std::optional<std::uint64_t> number_in_environment(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? std::nullopt : parse_number<std::uint64_t>(text);
}

std::string how_to_repeat(const DrawnSchedule& schedule) {
  return fmt::format("seed {}, alone: SYNCOPATE_SCHEDULE={} build/release/tests/schedules_tests\n  as a run: {}\n",
                     schedule.seed, schedule.seed, schedule.command());
}

// A folder that is there as long as this is.
class ScheduleFolder {
 public:
  explicit ScheduleFolder(std::uint64_t shard)
      : path_(std::filesystem::path(testing::TempDir()) / fmt::format("schedules-{}-{}", getpid(), shard)) {}
  ~ScheduleFolder() { std::filesystem::remove_all(path_); }
  std::string data() const { return path_ / "data"; }
  std::string logs() const { return path_ / "logs"; }

 private:
  const std::filesystem::path path_;
};

// How the schedules of a shard ended.
struct Ends {
  std::map<ExitCode, int> verdicts;
  int well = 0;
  int together = 0;  // of these, without a change of who takes part

  void add(const ScheduleRun& run) {
    if (!run.status.ok()) return;
    if (run.outcome.verdict) {
      ++verdicts[run.outcome.verdict->code];
    } else {
      ++well;
      if (stayed_together(run)) ++together;
    }
  }
  std::string to_string() const {
    std::string text = fmt::format("{} ended well, {} of them with all who had begun", well, together);
    for (const auto& [code, count] : verdicts)
      text += fmt::format("; {} with exit code {}", count, static_cast<int>(code));
    return text;
  }
};

// Returns whether the run has waited for somebody who was known to be gone; empty if it has not.
std::string unexplained_stall(const DrawnSchedule& schedule, const ScheduleRun& run, const ScheduleFolder& folder) {
  constexpr Duration kRecoveries = std::chrono::milliseconds(500);
  const std::optional<Duration> silence = FaultOutlook(schedule).longest_silence();
  if (!silence || run.length < *silence + kRecoveries) return {};
  // Those who are left may have to do the work of all.
  const Duration most =
      schedule.run.workers * carry_out(without_faults(schedule), folder.logs()).length + *silence + kRecoveries;
  if (run.length <= most) return {};
  return fmt::format("it lasted {:.3f} s, though nobody was silent for more than {:.3f} s", seconds(run.length),
                     seconds(*silence));
}

// Returns what is wrong with the schedule of this seed, a line each.
std::vector<std::string> complaints_about(const DrawnSchedule& schedule, const ScheduleFolder& folder, Ends& ends) {
  const ScheduleRun run = carry_out(schedule, folder.logs());
  ends.add(run);
  std::vector<std::string> complaints = broken_promises(schedule, run);
  if (schedule.seed % kRepeatedEvery == 0 && trace_of(run) != trace_of(carry_out(schedule, folder.logs()))) {
    complaints.emplace_back("repeated, it does not go alike");
  }
  if (const std::string stall = unexplained_stall(schedule, run, folder); !stall.empty()) complaints.push_back(stall);
  if (stayed_together(run) && is_independent_of_time(schedule.run) &&
      run.weights != carry_out(plain(schedule), folder.logs()).weights) {
    complaints.emplace_back("its weights differ from those of the same job when nothing happens to it");
  }
  return complaints;
}

class Schedules : public testing::TestWithParam<std::uint64_t> {};

TEST_P(Schedules, EndAsPromisedWhateverHappens) {
  if (number_in_environment("SYNCOPATE_SCHEDULE")) GTEST_SKIP() << "one schedule alone was asked for";
  const ScheduleFolder folder(GetParam());
  LastWords last_words(kLimitOfAShard);
  const std::uint64_t count = number_in_environment("SYNCOPATE_SCHEDULES").value_or(kSchedules);
  const std::uint64_t end = (GetParam() + 1) * count / kShards;
  std::size_t failures = 0;
  Ends ends;
  for (std::uint64_t seed = GetParam() * count / kShards; seed < end && failures < kMostFailures; ++seed) {
    last_words.set(fmt::format("\nwhile seed {} was drawn\n", seed));
    const DrawnSchedule schedule = draw_schedule(seed, folder.data());
    last_words.set("\nin the middle of " + how_to_repeat(schedule));
    const std::vector<std::string> complaints = complaints_about(schedule, folder, ends);
    if (!complaints.empty()) {
      ++failures;
      ADD_FAILURE() << how_to_repeat(schedule) << fmt::format("{}", fmt::join(complaints, "\n"));
    }
    ASSERT_FALSE(last_words.is_late()) << "too slow: " << how_to_repeat(schedule);
  }
  fmt::print("{}\n", ends.to_string());
}

INSTANTIATE_TEST_SUITE_P(Of, Schedules, testing::Range(std::uint64_t{0}, kShards));

TEST(Schedule, OfTheSeedThatWasAskedFor) {
  const std::optional<std::uint64_t> seed = number_in_environment("SYNCOPATE_SCHEDULE");
  if (!seed) GTEST_SKIP() << "SYNCOPATE_SCHEDULE=SEED asks for one";
  const ScheduleFolder folder(kShards);
  const DrawnSchedule schedule = draw_schedule(*seed, folder.data());
  LastWords last_words(kLimitOfAShard);
  last_words.set("\nin the middle of " + how_to_repeat(schedule));
  fmt::print("{}{}", how_to_repeat(schedule), trace_of(carry_out(schedule, folder.logs())));
  Ends ends;
  const std::vector<std::string> complaints = complaints_about(schedule, folder, ends);
  EXPECT_TRUE(complaints.empty()) << fmt::format("{}", fmt::join(complaints, "\n"));
}

}  // namespace
}  // namespace syncopate::experiments
