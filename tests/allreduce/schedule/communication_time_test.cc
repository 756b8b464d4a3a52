// What a step says of the time that its communication took, with a clock and a collective that a test drives.
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "allreduce/strategy/allreduce_strategy.h"
#include "common/os/aligned_buffer.h"

namespace syncopate::allreduce {
namespace {

using std::literals::chrono_literals::operator""ms;

constexpr Duration kOfEachBucket[] = {1ms, 2ms, 4ms};
constexpr Duration kOfAll = 7ms;

// Time passes only while a bucket is being reduced. A bucket is reduced once it is allowed; where the compute thread is
// to wait for all of it, that is when this thread has read the clock to begin its wait.
class DrivenTime final : public Clock {
 public:
  TimePoint now() const override {
    const std::lock_guard lock(mutex_);
    if (std::this_thread::get_id() == compute_thread_ && allow_next_when_read_) allow(1);
    return now_;
  }

  void allow_all() {
    const std::lock_guard lock(mutex_);
    allow(std::size(kOfEachBucket));
  }
  void allow_next_when_the_compute_thread_reads_the_clock() {
    const std::lock_guard lock(mutex_);
    allow_next_when_read_ = true;
  }
  void reduce_next() {
    std::unique_lock lock(mutex_);
    begun_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return allowed_ > reduced_; });
    now_ += kOfEachBucket[reduced_++];
    changed_.notify_all();
  }
  void wait_until_all_are_reduced() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reduced_ == std::size(kOfEachBucket); });
  }
  // Whether the first bucket is begun within a time that is long for that, and short for a test.
  bool is_begun_soon() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 50ms, [&] { return begun_; });
  }

 private:
  void allow(std::size_t count) const {
    allow_next_when_read_ = false;
    allowed_ += count;
    changed_.notify_all();
  }

  const std::thread::id compute_thread_ = std::this_thread::get_id();
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable bool allow_next_when_read_ = false;
  mutable std::size_t allowed_ = 0;
  bool begun_ = false;
  std::size_t reduced_ = 0;
  TimePoint now_{};
};

// One rank alone, whose allreduce takes the driven time once it is training.
class DrivenCollective final : public Collective {
 public:
  explicit DrivenCollective(DrivenTime& time) : time_(time) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  const char* name() const override { return "driven"; }
  Result<std::span<float>> allocate(std::size_t elements) override { return memory_.emplace_back(elements).span(); }
  Status all_reduce(std::span<float>, TimePoint) override {
    if (training) time_.reduce_next();
    return Status();
  }
  Status broadcast(std::span<float>, int, TimePoint) override { return Status(); }
  Status barrier(TimePoint) override { return Status(); }
  Status reduce_pair(std::span<float>, int, TimePoint) override { return Status(); }
  Status all_to_all(std::span<const Bytes>, std::span<Bytes>, TimePoint) override { return Status(); }
  void interrupt() override {}
  TransportCounters counters() const override { return {}; }

  bool training = false;

 private:
  DrivenTime& time_;
  std::deque<AlignedBuffer> memory_;
};

class CommunicationTime : public testing::Test {
 protected:
  void begin(bool overlap, std::size_t bucket_bytes = 64) {
    strategy_ = make_allreduce_strategy(collective_, {.bucket_bytes = bucket_bytes, .overlap = overlap}, time_);
    ParamLayout layout;
    for (const char* tensor : {"first", "second", "third"}) layout.add(tensor, {100});
    EXPECT_TRUE(strategy_->allocate(layout).ok());
    EXPECT_EQ(strategy_->join()->size(), std::size(kOfEachBucket));
    collective_.training = true;
    strategy_->begin_step({.step = 0, .learning_rate = 1.0});
  }
  void hand_over_all_buckets() {
    for (std::size_t bucket = 0; bucket < std::size(kOfEachBucket); ++bucket) strategy_->gradient_ready(bucket);
  }
  // Ends the step, in which each bucket is reduced once it is waited for.
  void expect_all_exposed() {
    strategy_->on_weights([this](Range) { time_.allow_next_when_the_compute_thread_reads_the_clock(); });
    time_.allow_next_when_the_compute_thread_reads_the_clock();
    const Result<SyncStats> stats = strategy_->finish_step();
    ASSERT_TRUE(stats.ok());
    EXPECT_EQ(stats->communication, kOfAll);
    EXPECT_EQ(stats->exposed_wait, kOfAll);
  }

  DrivenTime time_;
  DrivenCollective collective_{time_};
  std::unique_ptr<SyncStrategy> strategy_;
};

TEST_F(CommunicationTime, IsThatOfAllBucketsAndHiddenWhereAllAreReducedBeforeTheStepEnds) {
  begin(true);
  time_.allow_all();
  hand_over_all_buckets();
  time_.wait_until_all_are_reduced();
  const Result<SyncStats> stats = strategy_->finish_step();
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->communication, kOfAll);
  EXPECT_EQ(stats->exposed_wait, 0ms);
}

TEST_F(CommunicationTime, IsExposedForAllBucketsWhereNoneIsReducedBeforeItIsWaitedFor) {
  begin(true);
  hand_over_all_buckets();
  expect_all_exposed();
}

TEST_F(CommunicationTime, IsExposedForAllBucketsWithoutOverlap) {
  begin(false);
  hand_over_all_buckets();
  EXPECT_FALSE(time_.is_begun_soon()) << "before backward had ended";
  expect_all_exposed();
}

// A model so small that the search for a bucket size has one candidate: all three tensors, which are reported one by
// one.
TEST_F(CommunicationTime, BeginsWithABucketOfSeveralTensorsOnceAllOfThemAreFinal) {
  begin(true, 0);
  strategy_->gradient_ready(0);
  strategy_->gradient_ready(1);
  EXPECT_FALSE(time_.is_begun_soon());
  strategy_->gradient_ready(2);
  time_.allow_all();
  const Result<SyncStats> stats = strategy_->finish_step();
  ASSERT_TRUE(stats.ok());
  EXPECT_EQ(stats->communication, kOfEachBucket[0]);
}

}  // namespace
}  // namespace syncopate::allreduce
