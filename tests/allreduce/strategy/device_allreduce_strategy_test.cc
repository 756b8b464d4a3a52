#include "allreduce/strategy/device_allreduce_strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/device_training.h"

namespace syncopate::allreduce {
namespace {

using testing::HasSubstr;
using testing_support::ShadowDevice;
using testing_support::small_layout;
using testing_support::train_in_plain_loops;
using testing_support::train_on_device;

constexpr Duration kDeviceTimeout = std::chrono::seconds(20);
const OptimizerConfig kAdam{.kind = OptimizerKind::kAdam};

// A group of two, whose other rank's gradients are all 4.
class WithAConstantPeer final : public DeviceCollective {
 public:
  explicit WithAConstantPeer(ShadowDevice& device) : device_(device) {}

  int rank() const override { return 0; }
  int size() const override { return 2; }
  const char* name() const override { return "constant"; }
  std::string description() const override { return "a constant peer"; }
  void prepare(TensorSpan memory) override { prepared = memory; }
  Status all_reduce(std::span<const TensorSpan> buffers, Reduction reduction, Stream& stream) override {
    EXPECT_EQ(reduction, Reduction::kMean);
    ++calls;
    if (!failure.ok()) return failure;
    for (const TensorSpan buffer : buffers) {
      ++means;
      EXPECT_TRUE(prepared.data() <= buffer.data() && buffer.size() <= prepared.size());
      device_.give(stream, [buffer] {
        for (float& value : buffer) value = (value + 4) / 2;
      });
    }
    return {};
  }
  Status broadcast(TensorSpan /*buffer*/, int root, Stream& stream) override {
    EXPECT_EQ(root, 0);
    device_.give(stream, [] {});
    return {};
  }
  Status wait(const Event& event, TimePoint deadline) override { return device_.wait(event, deadline); }
  void interrupt() override {}

  int calls = 0;  // for means
  int means = 0;  // that were given
  TensorSpan prepared;
  Status failure;

 private:
  ShadowDevice& device_;
};

// Where the other rank has the same layout, or one of its own.
class Meeting final : public Rendezvous {
 public:
  Result<std::vector<std::string>> exchange(const std::string& /*group*/, int /*rank*/, int /*size*/,
                                            const std::string& value, TimePoint /*deadline*/) override {
    return std::vector<std::string>{value, others.empty() ? value : others};
  }
  std::string others;
};

class DeviceAllReduceTest : public testing::Test {
 protected:
  std::unique_ptr<SyncStrategy> make(ShadowDevice& device, std::size_t bucket_bytes, bool overlap = true) {
    collective_ = std::make_unique<WithAConstantPeer>(device);
    const DeviceAllReduceOptions options{
        .optimizer = kAdam, .bucket_bytes = bucket_bytes, .overlap = overlap, .timeout = kDeviceTimeout};
    return std::make_unique<DeviceAllReduceStrategy>(*collective_, device, meeting_, options, clock_);
  }

  const SteadyClock clock_;
  Meeting meeting_;
  std::unique_ptr<WithAConstantPeer> collective_;
};

TEST_F(DeviceAllReduceTest, UpdatesWithTheMeanInWhateverOrderTheDeviceWorks) {
  const ParamLayout layout = small_layout();
  const std::vector<float> expected = train_in_plain_loops(kAdam, 9, [&](std::vector<float>& gradients) {
    for (const TensorSpec& tensor : layout.tensors()) {
      for (std::size_t i = tensor.range.begin; i < tensor.range.end; ++i) gradients[i] = (gradients[i] + 4) / 2;
    }
  });
  for (std::size_t bucket_bytes : {1, 128, 4096}) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      ShadowDevice device(seed);
      const auto strategy = make(device, bucket_bytes, seed % 2 == 0);
      const std::vector<float> weights = train_on_device(*strategy, device, 9, nullptr, seed % 4 < 2);
      ASSERT_EQ(weights.size(), expected.size());
      for (const TensorSpec& tensor : layout.tensors()) {  // the peer's padding is no zero
        for (std::size_t i = tensor.range.begin; i < tensor.range.end; ++i) {
          ASSERT_EQ(weights[i], expected[i]) << "bucket of " << bucket_bytes << ", seed " << seed << ", weight " << i;
        }
      }
    }
  }
}

TEST_F(DeviceAllReduceTest, GoesOnFromWhatAnotherHasSaved) {
  ShadowDevice whole(1), device(2), other(3);
  const auto unbroken = make(whole, 128);
  const std::vector<float> expected = train_on_device(*unbroken, whole, 5);
  const auto before = make(device, 128);
  train_on_device(*before, device, 3);
  TrainingState state;
  ASSERT_TRUE(before->resumable()->save(state).ok());
  const auto after = make(other, 4096);
  const std::vector<float> weights = train_on_device(*after, other, 5, &state);
  ASSERT_EQ(weights.size(), expected.size());
  const ParamLayout layout = small_layout();
  for (const TensorSpec& tensor : layout.tensors()) {  // the peer's padding is no zero
    for (std::size_t i = tensor.range.begin; i < tensor.range.end; ++i) ASSERT_EQ(weights[i], expected[i]) << i;
  }
}

TEST_F(DeviceAllReduceTest, TellsTheTimesOfTheDeviceAndTheBytesOfARing) {
  ShadowDevice device;
  const auto strategy = make(device, 1);
  ASSERT_TRUE(strategy->allocate(small_layout()).ok());
  const Result<std::vector<Range>> buckets = strategy->join();
  ASSERT_TRUE(buckets.ok());
  strategy->begin_step({0, 0.1});
  for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) strategy->gradient_ready(bucket);
  strategy->gradients_complete();
  strategy->step_given();
  const Result<SyncStats> stats = strategy->finish_step();
  ASSERT_TRUE(stats.ok());
  EXPECT_GT(stats->communication, Duration::zero());
  EXPECT_GT(stats->optimizer, Duration::zero());
  EXPECT_EQ(stats->bytes_out, static_cast<std::int64_t>(small_layout().size() * sizeof(float)));  // 2·(2-1)/2
}

TEST_F(DeviceAllReduceTest, GivesNoMeanBeforeBackwardHasEndedWithoutOverlap) {
  for (const bool overlap : {true, false}) {
    ShadowDevice device;
    const auto strategy = make(device, 1, overlap);
    ASSERT_TRUE(strategy->allocate(small_layout()).ok());
    ASSERT_EQ(strategy->join()->size(), 3u);
    strategy->begin_step({0, 0.1});
    for (std::size_t bucket = 0; bucket < 3; ++bucket) strategy->gradient_ready(bucket);
    EXPECT_EQ(collective_->means, overlap ? 3 : 0);
    strategy->gradients_complete();
    strategy->step_given();
    const Result<SyncStats> stats = strategy->finish_step();
    ASSERT_TRUE(stats.ok());
    EXPECT_GT(stats->communication, Duration::zero());
    EXPECT_EQ(collective_->means, 3);
    EXPECT_EQ(collective_->calls, overlap ? 3 : 1);
  }
}

TEST_F(DeviceAllReduceTest, RefusesToTrainWithARankOfAnotherLayout) {
  ShadowDevice device;
  const auto strategy = make(device, 1);
  meeting_.others = "0000000000000001";
  ASSERT_TRUE(strategy->allocate(small_layout()).ok());
  const Status status = strategy->join().status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("rank 1 has layout 0000000000000001"));
}

TEST_F(DeviceAllReduceTest, PassesOnTheFirstFailureWithItsStepAndBucket) {
  ShadowDevice device;
  const auto strategy = make(device, 1);
  ASSERT_TRUE(strategy->allocate(small_layout()).ok());
  ASSERT_TRUE(strategy->join().ok());
  collective_->failure = Status::peer_lost("rank 1 is gone");
  strategy->begin_step({3, 0.1});
  strategy->gradient_ready(0);
  strategy->gradient_ready(1);
  EXPECT_EQ(strategy->finish_step().status().message(), "step 3, bucket 0: rank 1 is gone");
}

}  // namespace
}  // namespace syncopate::allreduce
