#include "worker/staged_batches.h"

#include <gtest/gtest.h>

#include <cstring>

#include "common/os/aligned_buffer.h"
#include "tests/support/shadow_device.h"

namespace syncopate::worker {
namespace {

using testing_support::ShadowDevice;

constexpr Duration kStagingTimeout = std::chrono::seconds(20);
constexpr std::size_t kStagedFloats = 3, kValues = 4;

// Batch n: every value n, every label -n. It uses the memory of a batch again for the next but one.
class CountingSource final : public BatchSource {
 public:
  BatchView next() override {
    float* const begin = memory_.data() + (count_ % 2) * 2 * kPart;
    const std::span<float> images(begin, kStagedFloats * kValues);
    const std::span<int> labels(reinterpret_cast<int*>(begin + kPart), kStagedFloats);
    std::ranges::fill(images, static_cast<float>(count_));
    std::ranges::fill(labels, -static_cast<int>(count_));
    ++count_;
    return {images, labels};
  }
  void seek(std::int64_t step) override { count_ = static_cast<std::size_t>(step); }
  std::span<std::byte> memory() override { return std::as_writable_bytes(memory_.span()); }

 private:
  static constexpr std::size_t kPart = 16;
  AlignedBuffer memory_{4 * kPart};
  std::size_t count_ = 0;
};

TEST(StagedBatches, GivesTheSourcesBatchesInWhateverOrderTheDeviceWorks) {
  const SteadyClock clock;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    ShadowDevice device(seed);
    CountingSource source;
    auto batches = StagedBatches::create(source, device, clock, kStagingTimeout);
    ASSERT_TRUE(batches.ok()) << batches.status().message();
    std::vector<float> seen;
    std::vector<int> labels;
    for (int step = 0; step < 6; ++step) {
      const BatchView batch = (*batches)->next();
      ASSERT_EQ(batch.values.size(), kStagedFloats * kValues);
      ASSERT_EQ(batch.labels.size(), kStagedFloats);
      device.give(device.compute(), [&seen, &labels, batch] {
        for (float value : batch.values) seen.push_back(value);
        for (int label : batch.labels) labels.push_back(label);
      });
    }
    device.finish();
    ASSERT_EQ(seen.size(), 6 * kStagedFloats * kValues);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      ASSERT_EQ(seen[i], static_cast<float>(i / (kStagedFloats * kValues))) << "seed " << seed;
    }
    for (std::size_t i = 0; i < labels.size(); ++i) ASSERT_EQ(labels[i], -static_cast<int>(i / kStagedFloats));
    EXPECT_EQ(device.unpinned_copies(), 0u);
  }
}

// Gives batches by order: each is ordered before it is taken, or there would be none.
class OrderedSource final : public BatchSource {
 public:
  BatchView next() override {
    EXPECT_FALSE(ordered_.empty());
    if (ordered_.empty()) return {};
    const int number = static_cast<int>(ordered_.front());
    ordered_.erase(ordered_.begin());
    float* const begin = memory_.data() + (count_++ % 2) * 2 * kPart;
    const std::span<float> images(begin, kStagedFloats * kValues);
    const std::span<int> labels(reinterpret_cast<int*>(begin + kPart), kStagedFloats);
    std::ranges::fill(images, static_cast<float>(number));
    std::ranges::fill(labels, number);
    return {images, labels};
  }
  void seek(std::int64_t) override {}
  void order(std::int64_t number) override { ordered_.push_back(number); }
  void forget_orders() override { ordered_.clear(); }
  std::span<std::byte> memory() override { return std::as_writable_bytes(memory_.span()); }

 private:
  static constexpr std::size_t kPart = 16;
  AlignedBuffer memory_{4 * kPart};
  std::size_t count_ = 0;
  std::vector<std::int64_t> ordered_;
};

TEST(StagedBatches, GoesByOrdersHoweverFewThereAreAtATime) {
  const SteadyClock clock;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    ShadowDevice device(seed);
    OrderedSource source;
    source.order(99);
    auto batches = StagedBatches::create(source, device, clock, kStagingTimeout, true);
    ASSERT_TRUE(batches.ok()) << batches.status().message();
    (*batches)->order(98);
    (*batches)->forget_orders();
    std::vector<int> labels;
    const auto take = [&] {
      const BatchView batch = (*batches)->next();
      ASSERT_EQ(batch.labels.size(), kStagedFloats);
      device.give(device.compute(), [&labels, batch] { labels.push_back(batch.labels.front()); });
    };
    for (const int number : {7, 8, 9}) (*batches)->order(number);
    for (int i = 0; i < 3; ++i) take();
    (*batches)->order(20);
    take();
    for (const int number : {30, 31}) (*batches)->order(number);
    take();
    (*batches)->forget_orders();
    (*batches)->order(40);
    take();
    device.finish();
    EXPECT_EQ(labels, (std::vector<int>{7, 8, 9, 20, 30, 40})) << "seed " << seed;
    EXPECT_TRUE((*batches)->status().ok());
  }
}

TEST(StagedBatches, HaveAnEndWhereTheDeviceHangs) {
  const SteadyClock clock;
  ShadowDevice device;
  CountingSource source;
  auto batches = StagedBatches::create(source, device, clock, kStagingTimeout);
  ASSERT_TRUE(batches.ok());
  device.hang(true);
  (*batches)->next();
  EXPECT_EQ((*batches)->status().code(), Code::kDeadlineExceeded);
  device.hang(false);
  device.finish();
}

TEST(StagedBatches, SaysWhereTheDeviceHasTooLittleMemory) {
  const SteadyClock clock;
  ShadowDevice device;
  device.limit_memory(10);
  CountingSource source;
  EXPECT_EQ(StagedBatches::create(source, device, clock, kStagingTimeout).status().code(), Code::kResourceExhausted);
}

}  // namespace
}  // namespace syncopate::worker
