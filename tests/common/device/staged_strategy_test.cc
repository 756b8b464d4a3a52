#include "common/device/staged_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ps/client/local_steps_strategy.h"
#include "ps/client/ps_strategy.h"
#include "ps/server/shard_server.h"
#include "tests/support/cluster.h"
#include "tests/support/device_training.h"
#include "worker/local_strategy.h"

namespace syncopate {
namespace {

using testing::HasSubstr;
using testing_support::ShadowDevice;
using testing_support::small_layout;
using testing_support::train_in_plain_loops;
using testing_support::train_on_device;

constexpr Duration kTimeout = std::chrono::seconds(20);
constexpr int kSteps = 5;
constexpr int kSeeds = 30;
const OptimizerConfig kAdam{.kind = OptimizerKind::kAdam};

// Notes when it is given a gradient; otherwise as LocalStrategy, but in a bucket for each tensor.
class InBuckets final : public SyncStrategy {
 public:
  explicit InBuckets(const Clock& clock) : local_(kAdam, clock) {}

  Result<ParamArenas> allocate(const ParamLayout& layout) override {
    layout_ = layout;
    return local_.allocate(layout);
  }
  Result<std::vector<Range>> join() override { return buckets_in_backward_order(layout_, 1); }
  void begin_step(const StepContext& step) override {
    given.clear();
    local_.begin_step(step);
  }
  void gradient_ready(std::size_t bucket) override { given.push_back(bucket); }
  Result<SyncStats> finish_step() override {
    if (!failure.ok()) return failure;
    Result<SyncStats> stats = local_.finish_step();
    for (const Range& range : buckets_in_backward_order(layout_, 1)) report_weights(range);
    return stats;
  }
  Status leave() override { return {}; }

  std::vector<std::size_t> given;  // in this step
  Status failure;

 private:
  ParamLayout layout_;
  worker::LocalStrategy local_;
};

TEST(StagedStrategy, TrainsAsTheInnerStrategyWouldInWhateverOrderTheDeviceWorks) {
  const SteadyClock clock;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    // Each tensor alone; two of the three together, by 64 bytes; all of them.
    for (const std::size_t least_copy : {std::size_t{1}, std::size_t{100}, StagedStrategy::kLeastCopy}) {
      ShadowDevice device(seed);
      InBuckets inner(clock);
      StagedStrategy staged(inner, device, ElementType::kFloat32, clock, kTimeout, least_copy);
      EXPECT_EQ(train_on_device(staged, device, kSteps), train_in_plain_loops(kAdam, kSteps));
      EXPECT_THAT(inner.given, testing::ElementsAre(0, 1, 2));
      EXPECT_EQ(device.unpinned_copies(), 0u);
    }
  }
}

TEST(StagedStrategy, CopiesWhatIsSmallWithItsNeighbours) {
  const SteadyClock clock;
  for (const auto& [least_copy, buckets] :
       {std::pair<std::size_t, std::size_t>{1, 3}, {StagedStrategy::kLeastCopy, 1}}) {
    ShadowDevice device;
    InBuckets inner(clock);
    StagedStrategy staged(inner, device, ElementType::kFloat32, clock, kTimeout, least_copy);
    const ParamLayout layout = small_layout();
    ASSERT_TRUE(staged.allocate(layout).ok());
    const Result<std::vector<Range>> ranges = staged.join();
    ASSERT_TRUE(ranges.ok());
    EXPECT_EQ(ranges->size(), buckets);
    EXPECT_EQ(ranges->front().end, layout.size());
    EXPECT_EQ(ranges->back().begin, 0u);
  }
}

TEST(StagedStrategy, ServesParameterServers) {
  const SteadyClock clock;
  for (const char* wire : {"shm", "ipc"}) {
    const ps::PsGroup group{.workers = 1, .servers = 2};
    const std::vector<std::unique_ptr<Transport>> endpoints = testing_support::connect_group(wire, group.size());
    testing_support::run_ranks(group.size(), [&](int rank) {
      Transport& endpoint = *endpoints[static_cast<std::size_t>(rank)];
      if (!group.is_worker(rank)) {
        ps::ShardServer server(
            {.group = group, .consistency = *ps::Consistency::parse("async"), .optimizer = kAdam, .timeout = kTimeout},
            endpoint, clock);
        EXPECT_TRUE(server.serve().ok());
        return;
      }
      ShadowDevice device(7);
      ps::PsStrategy inner({.group = group, .timeout = kTimeout}, endpoint, clock, nullptr);
      StagedStrategy staged(inner, device, ElementType::kFloat32, clock, kTimeout);
      EXPECT_EQ(train_on_device(staged, device, kSteps), train_in_plain_loops(kAdam, kSteps)) << wire;
      EXPECT_EQ(device.unpinned_copies(), 0u);
    });
  }
}

// Five steps, of which the last is taken to the servers by leaving. Alone, a worker is its own mean.
TEST(StagedStrategy, ServesAWorkerThatMakesStepsOfItsOwn) {
  const SteadyClock clock;
  const ps::PsGroup group{.workers = 1, .servers = 2};
  const std::vector<std::unique_ptr<Transport>> endpoints = testing_support::connect_group("shm", group.size());
  testing_support::run_ranks(group.size(), [&](int rank) {
    Transport& endpoint = *endpoints[static_cast<std::size_t>(rank)];
    if (!group.is_worker(rank)) {
      ps::ShardServer server(
          {.group = group, .consistency = *ps::Consistency::parse("local-sgd:2"), .optimizer = {}, .timeout = kTimeout},
          endpoint, clock);
      EXPECT_TRUE(server.serve().ok());
      return;
    }
    ShadowDevice device(7);
    ps::LocalStepsStrategy inner(
        {.optimizer = kAdam, .period = 2},
        std::make_unique<ps::PsStrategy>(ps::PsStrategyOptions{.group = group, .timeout = kTimeout}, endpoint, clock,
                                         nullptr),
        clock);
    StagedStrategy staged(inner, device, ElementType::kFloat32, clock, kTimeout);
    EXPECT_THAT(train_on_device(staged, device, kSteps),
                testing::Pointwise(testing::FloatNear(1e-5f), train_in_plain_loops(kAdam, kSteps)));
    EXPECT_EQ(device.unpinned_copies(), 0u);
  });
}

TEST(StagedStrategy, TellsTheTimeOfCopies) {
  const ManualClock clock;  // the update takes no time of the host
  ShadowDevice device;
  InBuckets inner(clock);
  StagedStrategy staged(inner, device, ElementType::kFloat32, clock, kTimeout, 1);
  ASSERT_TRUE(staged.allocate(small_layout()).ok());
  ASSERT_TRUE(staged.join().ok());
  staged.begin_step({0, 0.1});
  for (std::size_t bucket : {0, 1, 2}) staged.gradient_ready(bucket);
  const Result<SyncStats> stats = staged.finish_step();
  ASSERT_TRUE(stats.ok());
  EXPECT_GT(stats->copy, Duration::zero());
  EXPECT_GT(stats->exposed_wait, Duration::zero());
}

TEST(StagedStrategy, EndsInTimeWhereTheDeviceHangs) {
  const SteadyClock clock;
  ShadowDevice device;
  InBuckets inner(clock);
  StagedStrategy staged(inner, device, ElementType::kFloat32, clock, std::chrono::milliseconds(50), 1);
  ASSERT_TRUE(staged.allocate(small_layout()).ok());
  ASSERT_TRUE(staged.join().ok());
  device.hang(true);
  staged.begin_step({0, 0.1});
  staged.gradient_ready(0);
  const Result<SyncStats> stats = staged.finish_step();
  EXPECT_EQ(stats.status().code(), Code::kDeadlineExceeded);
  EXPECT_THAT(stats.status().message(), HasSubstr("gradients from the device"));
  EXPECT_TRUE(inner.given.empty());
  device.hang(false);
  device.finish();  // a real one's end waits for it, as long as the coordinator lets the process live
}

TEST(StagedStrategy, PassesOnFailuresOfTheDeviceAndOfTheInnerStrategy) {
  const SteadyClock clock;
  for (const bool of_device : {true, false}) {
    ShadowDevice device;
    InBuckets inner(clock);
    StagedStrategy staged(inner, device, ElementType::kFloat32, clock, kTimeout, 1);
    ASSERT_TRUE(staged.allocate(small_layout()).ok());
    ASSERT_TRUE(staged.join().ok());
    if (of_device) {
      device.fail_after(0, Status::internal("an illegal address"));
    } else {
      inner.failure = Status::peer_lost("rank 1 is gone");
    }
    staged.begin_step({0, 0.1});
    for (std::size_t bucket : {0, 1, 2}) staged.gradient_ready(bucket);
    EXPECT_THAT(staged.finish_step().status().message(),
                HasSubstr(of_device ? "an illegal address" : "rank 1 is gone"));
    if (of_device) {
      EXPECT_TRUE(inner.given.empty());  // gradients that never came are nobody's
    }
  }
}

TEST(StagedStrategy, SaysWhereTheDeviceHasTooLittleMemory) {
  const SteadyClock clock;
  ShadowDevice device;
  device.limit_memory(100);
  InBuckets inner(clock);
  StagedStrategy staged(inner, device, ElementType::kFloat32, clock, kTimeout);
  EXPECT_EQ(staged.allocate(small_layout()).status().code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace syncopate
