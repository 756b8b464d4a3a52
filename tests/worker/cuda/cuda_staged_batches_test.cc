// Batches on their way to a GPU, with steps that are given faster than they are done.
#include <algorithm>
#include <vector>

#include "common/os/aligned_buffer.h"
#include "tests/common/cuda/gpu_test.h"
#include "worker/staged_batches.h"

namespace syncopate::worker {
namespace {

constexpr std::size_t kValues = 64 * 784;  // of a batch
constexpr std::size_t kBatch = 64;
constexpr int kSteps = 50;

// Batch k holds k everywhere. It has the memory of the batch before.
class NumberedBatches final : public BatchSource {
 public:
  BatchView next() override {
    const std::span<float> images = memory_.span().first(kValues);
    const std::span<int> labels(reinterpret_cast<int*>(memory_.data() + kValues), kBatch);
    std::ranges::fill(images, static_cast<float>(taken_));
    std::ranges::fill(labels, taken_++);
    return {images, labels};
  }
  void seek(std::int64_t step) override { taken_ = static_cast<int>(step); }
  std::span<std::byte> memory() override { return std::as_writable_bytes(memory_.span()); }

 private:
  AlignedBuffer memory_{kValues + kBatch};
  int taken_ = 0;
};

class CudaStagedBatches : public testing_support::GpuTest {};

TEST_F(CudaStagedBatches, EveryStepFindsItsOwnBatch) {
  NumberedBatches host;
  const SteadyClock clock;
  const auto batches = StagedBatches::create(host, device(), clock, std::chrono::seconds(20));
  ASSERT_TRUE(batches.ok()) << batches.status().message();
  const std::size_t images_bytes = kValues * sizeof(float), labels_bytes = kBatch * sizeof(int);
  const std::span<std::byte> seen = *device().allocate_pinned(kSteps * (images_bytes + labels_bytes));
  for (int step = 0; step < kSteps; ++step) {
    const BatchView batch = (*batches)->next();
    const std::span<std::byte> here = seen.subspan(static_cast<std::size_t>(step) * (images_bytes + labels_bytes));
    compute().copy_to_host(std::as_bytes(batch.values), here.first(images_bytes));
    compute().copy_to_host(std::as_bytes(batch.labels), here.subspan(images_bytes, labels_bytes));
  }
  ASSERT_TRUE(finish(compute()).ok()) << device().status().message();
  for (int step = 0; step < kSteps; ++step) {
    const std::byte* const here = seen.data() + static_cast<std::size_t>(step) * (images_bytes + labels_bytes);
    const std::span images(reinterpret_cast<const float*>(here), kValues);
    const std::span labels(reinterpret_cast<const int*>(here + images_bytes), kBatch);
    EXPECT_TRUE(std::ranges::all_of(images, [&](float value) { return value == static_cast<float>(step); })) << step;
    EXPECT_TRUE(std::ranges::all_of(labels, [&](int value) { return value == step; })) << step;
  }
}

}  // namespace
}  // namespace syncopate::worker
