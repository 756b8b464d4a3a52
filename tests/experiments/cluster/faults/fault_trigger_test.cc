#include "experiments/cluster/faults/fault_trigger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace syncopate::experiments {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const std::vector<int> kWorkers{0, 1, 2, 3};
const FaultScene kScene{.workers = 4, .servers = 2, .total_steps = 1000, .timeout = std::chrono::seconds(2)};

TimePoint at(int ms) { return TimePoint(milliseconds(1'000'000 + ms)); }

FaultTrigger course_of(const std::string& text, std::uint64_t seed = 1) {
  return {FaultSchedule::parse(text).status().ok() ? (*FaultSchedule::parse(text)).draw(seed, kScene) : DrawnFaults(),
          seed};
}

// "kill worker 1, continue server 0"
std::string text_of(const std::vector<FaultAction>& actions) {
  std::string text;
  for (const FaultAction& action : actions) {
    constexpr const char* kNames[] = {"kill", "stop", "continue", "impair links of"};
    text +=
        (text.empty() ? "" : ", ") + std::string(kNames[static_cast<int>(action.kind)]) + " " + action.target.name();
  }
  return text;
}

TEST(FaultTrigger, KillsAWorkerWhenItItselfBeginsTheStep) {
  FaultTrigger trigger = course_of("kill:worker1@step200");
  trigger.on_training_begins(at(0));
  trigger.on_step_begins(0, 200);
  trigger.on_step_begins(1, 199);
  EXPECT_THAT(trigger.take_due(at(10), kWorkers), IsEmpty());
  trigger.on_step_begins(1, 200);
  const std::vector<FaultAction> due = trigger.take_due(at(11), kWorkers);
  ASSERT_EQ(text_of(due), "kill worker 1");
  EXPECT_EQ(due[0].fault, "kill:worker1@step200");
  EXPECT_EQ(due[0].step, 200);
  trigger.on_step_begins(1, 200);  // started again, it comes by here once more
  EXPECT_THAT(trigger.take_due(at(12), kWorkers), IsEmpty());
}

TEST(FaultTrigger, InjectsWhenTheFirstWorkerBeginsTheStep) {
  FaultTrigger trigger = course_of("kill:server1@step5,stop:evaluator@step5+1s");
  trigger.on_step_begins(2, 5);
  EXPECT_EQ(text_of(trigger.take_due(at(10), kWorkers)), "kill server 1, stop evaluator");
  trigger.on_step_begins(0, 5);
  EXPECT_THAT(trigger.take_due(at(11), kWorkers), IsEmpty());
}

TEST(FaultTrigger, CountsTimesFromTheBeginningOfTraining) {
  FaultTrigger trigger = course_of("kill:worker1@500ms");
  EXPECT_EQ(trigger.next(), TimePoint::max());
  EXPECT_THAT(trigger.take_due(at(700), kWorkers), IsEmpty());
  trigger.on_training_begins(at(1000));
  EXPECT_EQ(trigger.next(), at(1500));
  EXPECT_THAT(trigger.take_due(at(1499), kWorkers), IsEmpty());
  EXPECT_EQ(text_of(trigger.take_due(at(1500), kWorkers)), "kill worker 1");
  EXPECT_EQ(trigger.next(), TimePoint::max());
}

TEST(FaultTrigger, ContinuesWhatItHasStopped) {
  FaultTrigger trigger = course_of("stop:worker1@1s+3s");
  trigger.on_training_begins(at(0));
  EXPECT_EQ(text_of(trigger.take_due(at(1010), kWorkers)), "stop worker 1");
  EXPECT_EQ(trigger.next(), at(4010));
  EXPECT_THAT(trigger.take_due(at(4009), kWorkers), IsEmpty());
  EXPECT_EQ(text_of(trigger.take_due(at(4010), kWorkers)), "continue worker 1");
  EXPECT_THAT(trigger.end(), IsEmpty());
}

TEST(FaultTrigger, ContinuesAtTheEndWhatIsStillStopped) {
  FaultTrigger trigger = course_of("stop:worker1@1s+3s,stop:server0@1s+1s");
  trigger.on_training_begins(at(0));
  trigger.take_due(at(1000), kWorkers);
  trigger.take_due(at(2000), kWorkers);
  EXPECT_EQ(text_of(trigger.end()), "continue worker 1");
  EXPECT_THAT(trigger.end(), IsEmpty());
}

TEST(FaultTrigger, SaysHowLinksAreImpairedAndForHowLong) {
  FaultTrigger trigger = course_of("cut:worker2@step1+2s,delay:worker2@step1+3s");
  trigger.on_step_begins(2, 1);
  const std::vector<FaultAction> due = trigger.take_due(at(0), kWorkers);
  ASSERT_EQ(text_of(due), "impair links of worker 2, impair links of worker 2");
  EXPECT_EQ(due[0].link_fault, LinkFault::kCut);
  EXPECT_EQ(due[0].length, std::chrono::seconds(2));
  EXPECT_EQ(due[1].link_fault, LinkFault::kDelay);
  EXPECT_EQ(due[1].length, std::chrono::seconds(3));
}

TEST(FaultTrigger, HasWorkersAnnounceTheStepsThatConcernThem) {
  const FaultTrigger trigger =
      course_of("kill:worker1@step200,kill:server0@step50,stop:evaluator@step200+1s,kill:worker0@1s");
  EXPECT_THAT(trigger.announced_steps(0), ElementsAre(50, 200));
  EXPECT_THAT(trigger.announced_steps(1), ElementsAre(50, 200));
  EXPECT_THAT(course_of("kill:worker1@step200").announced_steps(0), IsEmpty());
}

TEST(FaultTrigger, KnowsWhatHasNotCome) {
  FaultTrigger trigger = course_of("kill:worker1@step200,kill:worker2@1s,churn:1s");
  trigger.on_training_begins(at(0));
  trigger.take_due(at(1000), {});
  ASSERT_THAT(trigger.not_come(), SizeIs(1));
  EXPECT_EQ(trigger.not_come()[0].to_string(), "kill:worker1@step200");
  EXPECT_THAT(trigger.churns_in_vain(), ElementsAre(std::chrono::seconds(1))) << "there was nobody to strike";
  trigger.take_due(trigger.next(), kWorkers);
  EXPECT_THAT(trigger.churns_in_vain(), IsEmpty());
}

// Every loss of ten thousand seconds, by worker.
std::map<int, int> losses_of(FaultTrigger trigger, std::span<const int> workers) {
  std::map<int, int> losses;
  trigger.on_training_begins(at(0));
  while (trigger.next() < at(10'000'000)) {
    for (const FaultAction& action : trigger.take_due(trigger.next(), workers)) ++losses[*action.target.rank];
  }
  return losses;
}

TEST(FaultTrigger, ChurnsWorkersThatAreThereAsOftenAsIsAskedFor) {
  const std::map<int, int> losses = losses_of(course_of("churn:4s"), kWorkers);
  ASSERT_THAT(losses, SizeIs(4));
  int sum = 0;
  for (const auto& [worker, count] : losses) {
    EXPECT_NEAR(count, 625, 75) << worker;
    sum += count;
  }
  EXPECT_NEAR(sum, 2500, 150);
  EXPECT_EQ(losses_of(course_of("churn:4s"), kWorkers), losses) << "the same seed, the same losses";
  EXPECT_NE(losses_of(course_of("churn:4s", 2), kWorkers), losses);
}

TEST(FaultTrigger, NeverTakesTheLastWorker) {
  EXPECT_THAT(losses_of(course_of("churn:4s"), std::vector<int>{2}), IsEmpty());
  EXPECT_THAT(losses_of(course_of("churn:4s"), {}), IsEmpty());
  EXPECT_THAT(losses_of(course_of("churn:4s"), std::vector<int>{1, 3}), SizeIs(2));
}

}  // namespace
}  // namespace syncopate::experiments
