// RunMonitor in a run whose workers wait for each other in a collective operation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiments/cluster/coordinator/watched_run.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using std::literals::chrono_literals::operator""ms;
using std::literals::chrono_literals::operator""s;

constexpr const char* kWhat = "step 7, bucket 3 of 9 (all_reduce, 1.05 MB)";

// Two workers. Worker 0 stands in operation 20 from the beginning; worker 1 computes, until it is stopped or comes.
class StalledRun : public WatchedRun {
 public:
  explicit StalledRun(Duration warning = 2s)
      : WatchedRun(plan_of(Mode::kAllreduce, 2, 0),
                   {.timeout = kTimeout, .stalls = {.warning = warning, .heartbeat = 1s}}),
        begin_(now()) {
    everybody_says_hello();
  }

  // Heartbeats of `time`; worker 1 is not heard where it is stopped.
  void wait(Duration time, bool is_stopped) {
    for (Duration passed{}; passed < time; passed += kTick) {
      let_pass(kTick);
      monitor().on_heard(evaluator(), now());
      say(worker(0), {.begun = 20, .what = kWhat, .under_way = true, .age = now() - begin_});
      if (!is_stopped) say(worker(1), {.begun = 19, .what = "another"});
      monitor().on_tick(now());
    }
  }
  void say(std::size_t process, const CollectiveReport& report) {
    monitor().on_heartbeat(process, process == worker(0) ? "synchronising" : "forward", 7, report, now());
  }

 private:
  TimePoint begin_;
};

TEST(RunMonitor, ReportsAStallAndItsEndAndLetsTheRunGoOn) {
  StalledRun run;
  run.wait(1900ms, false);
  EXPECT_THAT(run.actions(), IsEmpty());
  run.wait(5s, false);
  EXPECT_THAT(run.actions(),
              ElementsAre("report: stalled for 2.0 s: step 7, bucket 3 of 9 (all_reduce, 1.05 MB): rank 0 waits; "
                          "missing: rank 1 (forward at step 7, last heard 0.0 s ago)"));
  run.say(run.worker(0), {.begun = 20, .what = kWhat});
  run.monitor().on_tick(run.now());
  EXPECT_THAT(run.actions(), ElementsAre(StartsWith("report: went on after 6.9 s: step 7, bucket 3 of 9")));
  EXPECT_EQ(run.verdict(), std::nullopt);
}

TEST(RunMonitor, SaysInTheVerdictOnASilentWorkerWhatTheOthersWaitForItIn) {
  for (const Duration warning : {2s, 0s}) {
    StalledRun run(warning);
    run.wait(100ms, false);
    run.wait(5s, true);
    EXPECT_EQ(run.verdict(), ExitCode::kTimeout);
    EXPECT_THAT(run.line(),
                AllOf(StartsWith("worker 1 (host box, pid 101; forward at step 7, last heard 5.0 s ago) has "
                                 "stopped answering; stalled for 5.1 s: step 7, bucket 3 of 9 "
                                 "(all_reduce, 1.05 MB): rank 0 waits; missing: rank 1 (forward at step 7"),
                      EndsWith("; this mode needs every worker")));
  }
}

TEST(RunMonitor, SaysInTheVerdictOnAPassedDeadlineWhoIsMissingInWhichOperation) {
  StalledRun run;
  run.wait(10s, false);
  run.fail(run.worker(0), kNobodyAnswers);
  run.pass(1500ms);
  EXPECT_EQ(run.verdict(), ExitCode::kTimeout);
  EXPECT_THAT(run.line(), AllOf(StartsWith("worker 0 "), HasSubstr(kNobodyAnswers.message()),
                                HasSubstr("stalled for 10.0 s: step 7, bucket 3 of 9 (all_reduce, 1.05 MB): rank 0 "
                                          "waits; missing: rank 1 (forward at step 7")));
}

TEST(RunMonitor, SaysNothingOfWaitsThatWereShort) {
  StalledRun run;
  run.wait(500ms, false);
  run.fail(run.worker(0), kNobodyAnswers);
  run.pass(1500ms);
  EXPECT_THAT(run.line(), Not(HasSubstr("stalled")));
}

// mpirun ends all as soon as one has: how they ended, it alone knows.
TEST(RunMonitor, DoesNotTakeAWorkerThatItsCarrierEndedForTheCauseOfAPassedDeadline) {
  StalledRun run;
  run.wait(10s, false);
  run.fail(run.worker(0), kNobodyAnswers);
  run.end(run.worker(0), {});
  run.end(run.worker(1), {});
  EXPECT_EQ(run.verdict(), std::nullopt);
  run.pass(1500ms);
  EXPECT_THAT(run.line(), StartsWith("worker 0 "));
}

TEST(RunMonitor, TakesACarriedWorkerThatIsGoneForTheCauseOfALostPeer) {
  StalledRun run;
  run.fail(run.worker(0), kPeerIsLost);
  run.end(run.worker(1), {});
  EXPECT_THAT(run.line(), StartsWith("worker 1 "));
}

}  // namespace
}  // namespace syncopate::experiments
