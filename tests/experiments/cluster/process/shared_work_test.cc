#include "experiments/cluster/process/shared_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace syncopate::experiments {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

class Orders final : public worker::BatchSource {
 public:
  worker::BatchView next() override { return {}; }
  void seek(std::int64_t) override {}
  void order(std::int64_t number) override { ordered.push_back(number); }
  void forget_orders() override { ordered.clear(); }
  std::vector<std::int64_t> ordered;
};

class SharedWorkTest : public testing::Test {
 protected:
  // Ranges that the queue gives next, in order; then there are no more.
  std::vector<BatchRange> given_;
  std::vector<ControlClient::BatchRequest> requests_;
  bool is_late_ = false;  // an answer is here only once it is waited for
  int waits_ = 0;

  std::optional<std::int64_t> next(milliseconds step = milliseconds(5)) {
    const Result<std::optional<std::int64_t>> number = work_.next(step_++);
    EXPECT_TRUE(number.ok());
    clock_.advance(step);
    return *number;
  }

  ManualClock clock_;
  Activity activity_;
  Orders orders_;
  std::int64_t step_ = 0;
  SharedWork work_{{.request = [this](const ControlClient::BatchRequest& request) { requests_.push_back(request); },
                    .take = [this](bool wait) -> Result<std::optional<BatchRange>> {
                      if (is_late_ && !wait) return std::optional<BatchRange>();
                      waits_ += wait ? 1 : 0;
                      if (given_.empty()) return std::optional(BatchRange());
                      const BatchRange range = given_.front();
                      given_.erase(given_.begin());
                      return std::optional(range);
                    }},
                   orders_,
                   clock_,
                   activity_};
};

TEST_F(SharedWorkTest, TrainsWhatItHasDrawnAndEndsWhereThereIsNoMore) {
  given_ = {{0, 1}, {4, 6}};
  ASSERT_TRUE(work_.begin(0).ok());
  EXPECT_EQ(next(), 0);
  EXPECT_EQ(next(), 4);
  EXPECT_EQ(next(), 5);
  EXPECT_EQ(next(), std::nullopt);
  EXPECT_EQ(next(), std::nullopt) << "however often it asks";
  EXPECT_THAT(orders_.ordered, ElementsAre(0, 4, 5));
}

TEST_F(SharedWorkTest, DrawsWhatLastsFiftyMilliseconds) {
  given_ = {{0, 1}, {1, 5}, {5, 9}};
  ASSERT_TRUE(work_.begin(0).ok());
  for (int i = 0; i < 5; ++i) next(milliseconds(5));
  ASSERT_GE(requests_.size(), 2u);
  EXPECT_EQ(requests_[0].wanted, 1) << "nothing is known of its pace";
  EXPECT_EQ(requests_[1].wanted, 10);
}

TEST_F(SharedWorkTest, DrawsOneAtATimeWhereAStepIsLong) {
  given_ = {{0, 1}, {1, 2}, {2, 3}};
  ASSERT_TRUE(work_.begin(0).ok());
  next(milliseconds(60));
  EXPECT_EQ(requests_.size(), 1u) << "none ahead, which would be one more to wait for in the end";
  next(milliseconds(60));
  next(milliseconds(60));
  EXPECT_EQ(requests_.back().wanted, 1);
}

TEST_F(SharedWorkTest, DrawsAheadOnceAQuarterIsTrainedAndDoesNotWait) {
  given_ = {{0, 1}, {1, 9}, {9, 13}};
  ASSERT_TRUE(work_.begin(0).ok());
  next();
  next();
  is_late_ = true;
  waits_ = 0;
  next();
  EXPECT_EQ(requests_.size(), 2u) << "seven of eight are left";
  next();
  EXPECT_EQ(requests_.size(), 3u) << "six of eight are left";
  for (int i = 0; i < 5; ++i) next();
  EXPECT_EQ(waits_, 0);
  EXPECT_EQ(requests_.size(), 3u) << "one at a time";
  EXPECT_EQ(next(), 9);
  EXPECT_EQ(waits_, 1) << "there was nothing else to do";
}

TEST_F(SharedWorkTest, KeepsInANewMembershipWhatItHasAndSaysSo) {
  given_ = {{0, 1}, {1, 5}};
  ASSERT_TRUE(work_.begin(0).ok());
  next();
  next();
  EXPECT_EQ(next(), 2);  // in step 2, which fails
  ASSERT_TRUE(work_.begin(2).ok());
  EXPECT_THAT(orders_.ordered, ElementsAre(2, 3, 4));
  step_ = 2;
  EXPECT_EQ(next(), 2);
  for (int i = 0; i < 2; ++i) next();
  ASSERT_TRUE(requests_.back().anew);
  EXPECT_FALSE(requests_.back().held.empty());
}

TEST_F(SharedWorkTest, GoesOnBehindAStepThatHasBeenFinishedElsewhere) {
  given_ = {{0, 1}, {1, 5}};
  ASSERT_TRUE(work_.begin(0).ok());
  next();
  EXPECT_EQ(next(), 1);  // in step 1, of which all pushes were applied before its end was seen here
  ASSERT_TRUE(work_.begin(2).ok());
  EXPECT_THAT(orders_.ordered, ElementsAre(2, 3, 4));
}

TEST_F(SharedWorkTest, HasNothingAfterItWentBackToACheckpoint) {
  given_ = {{0, 1}, {1, 5}, {0, 1}};
  ASSERT_TRUE(work_.begin(0).ok());
  next();
  next();
  work_.go_back();
  ASSERT_TRUE(work_.begin(0).ok());
  EXPECT_THAT(orders_.ordered, IsEmpty());
  EXPECT_EQ(next(), 0);
  EXPECT_TRUE(requests_.back().anew);
  EXPECT_THAT(requests_.back().held, IsEmpty());
}

}  // namespace
}  // namespace syncopate::experiments
