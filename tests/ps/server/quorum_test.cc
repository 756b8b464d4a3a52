// Meetings that end without all workers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ps/server/shard_harness.h"

namespace syncopate::ps {
namespace {

using std::chrono::milliseconds;
using testing::Each;
using testing::FloatEq;

// Workers push how far they have moved, each from so many steps.
class Meetings {
 public:
  Meetings(int workers, const std::string& quorum) : job_(workers, "local-sgd:4+" + quorum, 2) { job_.join_all(); }

  void push(int rank, float moved, float steps = 4) { job_.push(rank, moved, steps); }
  void lose(int rank) { job_.lose(rank); }
  void leave(int rank) { job_.leave(rank); }
  // Lets time pass, and the shard act on it.
  void wait(Duration time) {
    job_.now += time;
    if (job_.shard.next_time() <= job_.now) job_.take_time();
  }
  bool waits(int rank) { return job_.worker(rank).waiting; }
  float weights() {
    EXPECT_THAT(job_.weights(), Each(FloatEq(job_.weights()[0])));
    return job_.weights()[0];
  }
  std::int64_t version() { return job_.version(); }
  ShardHarness& job() { return job_; }

 private:
  ShardHarness job_;
};

TEST(QuorumMeeting, EndsOnceSoManyHaveCome) {
  Meetings meetings(3, "2");
  meetings.push(0, 1);
  EXPECT_TRUE(meetings.waits(0));
  meetings.push(2, 3);
  EXPECT_FALSE(meetings.waits(0));
  EXPECT_FALSE(meetings.waits(2));
  EXPECT_FLOAT_EQ(meetings.weights(), -2) << "the mean of two";
}

TEST(QuorumMeeting, AnswersALaterWorkerAtOnceAndCountsItInTheNext) {
  Meetings meetings(3, "2");
  meetings.push(0, 1);
  meetings.push(1, 1);
  meetings.push(2, 7);
  EXPECT_FALSE(meetings.waits(2));
  EXPECT_EQ(meetings.job().worker(2).version, 1) << "the newest weights";
  EXPECT_EQ(meetings.job().worker(2).answers.back().staleness, 1);
  EXPECT_FLOAT_EQ(meetings.weights(), -1) << "which do not have its own yet";
  meetings.push(0, 1);
  EXPECT_FALSE(meetings.waits(0)) << "what came too late counts for the quorum of the next";
  EXPECT_FLOAT_EQ(meetings.weights(), -1 - 8 / 2.0F);
  EXPECT_EQ(meetings.job().shard.counters().late, 0) << "nothing was dropped";
}

TEST(QuorumMeeting, WeighsAPushByTheStepsThatItStandsFor) {
  Meetings meetings(2, "2");
  meetings.push(0, 1, 4);
  meetings.push(1, 6, 1);
  EXPECT_FLOAT_EQ(meetings.weights(), -(4 * 1 + 1 * 6) / 5.0F);
}

TEST(QuorumMeeting, WaitsForTheOthersUntilTheGraceHasPassed) {
  Meetings meetings(4, "2+100ms");
  meetings.push(0, 1);
  meetings.wait(milliseconds(500));
  meetings.push(1, 1);
  EXPECT_EQ(meetings.job().shard.next_time(), meetings.job().now + milliseconds(100));
  meetings.wait(milliseconds(60));
  meetings.push(2, 4);
  meetings.wait(milliseconds(39));
  EXPECT_EQ(meetings.version(), 0) << "it began when the quorum had come, and nobody begins it anew";
  meetings.wait(milliseconds(1));
  EXPECT_EQ(meetings.version(), 1);
  EXPECT_FLOAT_EQ(meetings.weights(), -2);
  for (const int rank : {0, 1, 2}) EXPECT_FALSE(meetings.waits(rank));
  EXPECT_EQ(meetings.job().shard.next_time(), TimePoint::max());
}

TEST(QuorumMeeting, EndsBeforeTheGraceHasPassedOnceAllHaveCome) {
  Meetings meetings(3, "2+100ms");
  for (const int rank : {0, 1, 2}) meetings.push(rank, 3);
  EXPECT_EQ(meetings.version(), 1);
  EXPECT_FLOAT_EQ(meetings.weights(), -3);
  EXPECT_EQ(meetings.job().shard.next_time(), TimePoint::max());
}

TEST(QuorumMeeting, EndsOnceNobodyIsLeftWhoCouldCome) {
  Meetings meetings(3, "2+100ms");
  meetings.push(0, 3);
  meetings.push(1, 5);
  meetings.lose(2);
  EXPECT_EQ(meetings.version(), 1);
  meetings.push(0, 1);
  meetings.leave(1);
  EXPECT_FALSE(meetings.waits(0)) << "one is left, and has come";
  EXPECT_FLOAT_EQ(meetings.weights(), -4 - 1);
}

TEST(QuorumMeeting, WaitsAgainIfOneOfTheQuorumIsLost) {
  Meetings meetings(4, "2+100ms");
  meetings.push(0, 3);
  meetings.push(1, 5);
  meetings.lose(1);
  meetings.wait(milliseconds(200));
  EXPECT_TRUE(meetings.waits(0));
  meetings.push(2, 1);
  meetings.wait(milliseconds(100));
  EXPECT_FLOAT_EQ(meetings.weights(), -2);
}

TEST(QuorumMeeting, CountsWhatCameTooLateForTheLastOneAtTheEnd) {
  Meetings meetings(3, "2");
  for (const int rank : {0, 1}) meetings.push(rank, 1);
  meetings.push(2, 6);
  EXPECT_FLOAT_EQ(meetings.weights(), -1);
  for (const int rank : {0, 1, 2}) meetings.leave(rank);
  EXPECT_FLOAT_EQ(meetings.weights(), -7);
  EXPECT_THAT(meetings.job().worker(0).weights, Each(FloatEq(-7)));
}

TEST(QuorumMeeting, KeepsWhatCameTooLateThroughARestart) {
  ShardHarness before(4, "local-sgd:4+2", 2);
  before.join_all();
  for (const int rank : {0, 1}) before.push(rank, 1, 4);
  before.push(2, 6, 2);
  TrainingState state;
  before.shard.save(state);
  ShardHarness after(4, "local-sgd:4+2", 2, {.kind = OptimizerKind::kSgd}, {}, &state);
  after.join_all();
  after.push(3, 3, 4);
  EXPECT_THAT(after.weights(), Each(FloatEq(-1 - (2 * 6 + 4 * 3) / 6.0F)));
}

// Two workers could each have pushed too late to the chunk in which the other waits, and wait for ever.
TEST(QuorumMeeting, LetsNobodyWaitForAWorkerWhosePushCameTooLate) {
  Meetings meetings(4, "2");
  for (const int rank : {2, 3}) meetings.push(rank, 1);
  meetings.push(1, 1);  // late, and answered; it may now wait for worker 0 in another chunk
  for (const int rank : {2, 3}) meetings.leave(rank);
  meetings.push(0, 1);
  EXPECT_FALSE(meetings.waits(0));
}

TEST(QuorumMeeting, DropsAPushThatStandsForNoStep) {
  ShardHarness job(2, "local-sgd:4+1", 2);
  job.join_all();
  const std::vector<float> moved(2, 1.0F);
  const auto pushed = job.shard.on_push({.step = {.worker = 0, .clock = 1, .learning_rate = 0}, .gradient = moved});
  EXPECT_THAT(pushed.status().message(), testing::HasSubstr("a push that stands for 0 steps"));
}

}  // namespace
}  // namespace syncopate::ps
