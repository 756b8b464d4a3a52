#include "worker/work.h"

#include <gtest/gtest.h>

namespace syncopate::worker {
namespace {

class Source final : public BatchSource {
 public:
  BatchView next() override { return {}; }
  void seek(std::int64_t step) override { sought = step; }
  std::int64_t sought = -1;
};

// Says how many updates there have been; more are known once the weights have been waited for.
class Updates final : public SyncStrategy {
 public:
  Result<ParamArenas> allocate(const ParamLayout&) override { return ParamArenas{}; }
  Result<std::vector<Range>> join() override { return std::vector<Range>{}; }
  void begin_step(const StepContext&) override {}
  void gradient_ready(std::size_t) override {}
  Result<SyncStats> finish_step() override { return SyncStats{}; }
  Status leave() override { return {}; }
  Status weights_needed(Range) override {
    known = made;
    return {};
  }
  std::optional<std::int64_t> updates() const override { return known; }

  std::int64_t known = 0, made = 0;
};

TEST(Quota, IsThisWorkersPartOfEachGlobalBatch) {
  Source source;
  Quota quota(source, 4, 3);
  ASSERT_TRUE(quota.begin(1).ok());
  EXPECT_EQ(source.sought, 1);
  EXPECT_EQ(*quota.next(1), 4);
  EXPECT_EQ(*quota.next(2), 8);
  EXPECT_EQ(*quota.next(3), std::nullopt);
}

TEST(UntilUpdated, EndsAfterTheUpdatesThatUseAsManyBatchesAsTheJobHas) {
  EXPECT_EQ(UntilUpdated::updates_of(12, 3), 4);
  EXPECT_EQ(UntilUpdated::updates_of(13, 3), 5);
  Source source;
  Updates strategy;
  UntilUpdated work(source, strategy, 3, 13);
  ASSERT_TRUE(work.begin(0).ok());
  for (std::int64_t made = 0; made < 5; ++made) {
    strategy.known = strategy.made = made;
    EXPECT_EQ(*work.next(100 * made), 3 * made) << "however many steps this worker has made";
  }
  strategy.known = strategy.made = 5;
  EXPECT_EQ(*work.next(0), std::nullopt);
}

TEST(UntilUpdated, WaitsForTheLastAnswerWhereItMayNotHaveCome) {
  Source source;
  Updates strategy;
  UntilUpdated work(source, strategy, 3, 13);
  strategy.known = 4;
  strategy.made = 5;
  EXPECT_EQ(*work.next(0), std::nullopt);
  strategy.known = 2;
  strategy.made = 3;
  EXPECT_EQ(*work.next(0), 6) << "no need to wait before";
}

}  // namespace
}  // namespace syncopate::worker
