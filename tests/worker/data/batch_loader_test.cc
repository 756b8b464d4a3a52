#include "worker/data/batch_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "worker/data/image_dataset.h"

namespace syncopate::worker {
namespace {

using testing::ElementsAre;

// Sample i is one image of 1x2 pixels, (i mod 256, i div 256), with label i mod 10.
class CountingDataset final : public ImageDataset {
 public:
  explicit CountingDataset(std::int64_t size) : ImageDataset({1, 2, 1}, 10), size_(size) {}
  std::int64_t size() const override { return size_; }
  std::span<const std::uint8_t> image(std::int64_t index, std::span<std::uint8_t> scratch) const override {
    scratch[0] = static_cast<std::uint8_t>(index % 256);
    scratch[1] = static_cast<std::uint8_t>(index / 256);
    return scratch.first(2);
  }
  int label(std::int64_t index) const override { return static_cast<int>(index % 10); }

 private:
  std::int64_t size_;
};

std::vector<std::int64_t> permutation(std::uint64_t seed, std::int64_t epoch, std::int64_t size) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(size));
  epoch_permutation(seed, epoch, values);
  return values;
}

std::vector<std::int64_t> indices(const BatchOrder& order, const std::vector<std::int64_t>& permuted,
                                  std::int64_t step) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(order.batch_size));
  batch_indices(order, permuted, step, values);
  return values;
}

TEST(EpochPermutation, HoldsEveryIndexOnce) {
  for (const std::int64_t size : {1, 2, 10, 1000}) {
    std::vector<std::int64_t> sorted = permutation(1, 0, size), expected(static_cast<std::size_t>(size));
    std::ranges::sort(sorted);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(sorted, expected);
  }
}

TEST(EpochPermutation, DependsOnSeedAndEpochAlone) {
  EXPECT_EQ(permutation(1, 3, 100), permutation(1, 3, 100));
  EXPECT_NE(permutation(1, 3, 100), permutation(1, 4, 100));
  EXPECT_NE(permutation(1, 3, 100), permutation(2, 3, 100));
  EXPECT_THAT(permutation(1, 0, 8), ElementsAre(1, 7, 3, 4, 0, 5, 2, 6));
}

TEST(BatchIndices, TakeEveryWthSampleOfTheGlobalBatchBeginningWithTheRth) {
  const std::vector<std::int64_t> permuted = {10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22};
  BatchOrder order{.dataset_size = 13, .batch_size = 2, .workers = 3};
  EXPECT_EQ(order.steps_per_epoch(), 2);
  EXPECT_THAT(indices(order, permuted, 0), ElementsAre(10, 13));
  order.rank = 2;
  EXPECT_THAT(indices(order, permuted, 0), ElementsAre(12, 15));
  EXPECT_THAT(indices(order, permuted, 1), ElementsAre(18, 21));
}

TEST(BatchIndices, OfAllWorkersInterleavedAreTheBatchOfOneWorker) {
  const std::vector<std::int64_t> permuted = permutation(9, 2, 1000);
  for (const int workers : {1, 2, 3, 4}) {
    const BatchOrder local{.dataset_size = 1000, .batch_size = 8 * workers};
    for (std::int64_t step = 0; step < local.steps_per_epoch(); ++step) {
      std::vector<std::int64_t> gathered(static_cast<std::size_t>(8 * workers));
      for (int rank = 0; rank < workers; ++rank) {
        const BatchOrder order{.dataset_size = 1000, .batch_size = 8, .rank = rank, .workers = workers};
        ASSERT_EQ(order.steps_per_epoch(), local.steps_per_epoch());
        const std::vector<std::int64_t> own = indices(order, permuted, step);
        for (std::size_t i = 0; i < own.size(); ++i) {
          gathered[i * static_cast<std::size_t>(workers) + static_cast<std::size_t>(rank)] = own[i];
        }
      }
      ASSERT_EQ(gathered, indices(local, permuted, step));
    }
  }
}

TEST(Normalize, MapsBytesByTheOneAffineMapping) {
  std::vector<std::uint8_t> bytes(256);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  std::vector<float> values(256);
  normalize(bytes, values);
  EXPECT_FLOAT_EQ(values[0], -0.3f);
  EXPECT_FLOAT_EQ(values[51], 0.1f);
  EXPECT_FLOAT_EQ(values[255], 1.7f);
}

// The next batches of `loader` must be those of batch_indices, from `first` counted over all epochs.
void expect_batches(BatchLoader& loader, const BatchOrder& order, std::int64_t first, std::int64_t count) {
  for (std::int64_t batch = first; batch < first + count; ++batch) {
    const std::int64_t epoch = batch / order.steps_per_epoch(), step = batch % order.steps_per_epoch();
    const std::vector<std::int64_t> expected = indices(order, permutation(order.seed, epoch, order.dataset_size), step);
    const BatchView view = loader.next();
    ASSERT_EQ(view.labels.size(), expected.size());
    ASSERT_EQ(view.values.size(), expected.size() * 2);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::vector<std::uint8_t> bytes = {static_cast<std::uint8_t>(expected[i] % 256),
                                               static_cast<std::uint8_t>(expected[i] / 256)};
      std::vector<float> values(2);
      normalize(bytes, values);
      ASSERT_EQ(view.values[2 * i], values[0]) << "batch " << batch << " sample " << i;
      ASSERT_EQ(view.values[2 * i + 1], values[1]) << "batch " << batch << " sample " << i;
      ASSERT_EQ(view.labels[i], expected[i] % 10) << "batch " << batch << " sample " << i;
    }
  }
}

TEST(BatchLoader, GivesTheOrderExactlyOverEpochBorders) {
  const CountingDataset dataset(1003);
  for (const int depth : {1, 2, 3, 8}) {
    const BatchOrder order{.seed = 5, .dataset_size = 1003, .batch_size = 16, .rank = 1, .workers = 3};
    BatchLoader loader(dataset, order, depth);
    expect_batches(loader, order, 0, 5 * order.steps_per_epoch() + 3);
  }
}

TEST(BatchLoader, WorksWithOneBatchAnEpoch) {
  const CountingDataset dataset(10);
  const BatchOrder order{.dataset_size = 10, .batch_size = 10};
  BatchLoader loader(dataset, order);
  expect_batches(loader, order, 0, 200);
}

TEST(BatchLoader, KeepsABatchUntilTheNextCall) {
  const CountingDataset dataset(1000);
  BatchLoader loader(dataset, {.dataset_size = 1000, .batch_size = 10}, 1);
  for (int batch = 0; batch < 500; ++batch) {
    const BatchView view = loader.next();
    const std::vector<float> images(view.values.begin(), view.values.end());
    std::this_thread::yield();
    ASSERT_TRUE(std::ranges::equal(view.values, images));
  }
}

TEST(BatchLoader, EndsAtOnceWhetherItsThreadSleepsOrWorks) {
  const CountingDataset dataset(1000);
  for (int taken = 0; taken < 200; ++taken) {
    BatchLoader loader(dataset, {.dataset_size = 1000, .batch_size = 10});
    for (int i = 0; i < taken % 10; ++i) loader.next();
  }
}

TEST(BatchLoader, PreparesWhatIsOrderedInThatOrder) {
  const CountingDataset dataset(50);
  const int workers = 2;
  const BatchOrder order{.seed = 3, .dataset_size = 50, .batch_size = 4, .rank = 1, .workers = workers};
  // Batch n of the job is part n % workers of global batch n / workers.
  std::vector<std::vector<float>> job(40);
  for (int rank = 0; rank < workers; ++rank) {
    BatchOrder own = order;
    own.rank = rank;
    BatchLoader loader(dataset, own);
    for (std::size_t step = 0; step < 20; ++step) {
      const std::span<const float> values = loader.next().values;
      job[step * 2 + static_cast<std::size_t>(rank)].assign(values.begin(), values.end());
    }
  }
  for (const int depth : {1, 2, 8}) {
    BatchLoader loader(dataset, order, depth, true);
    const std::vector<std::int64_t> numbers = {0, 1, 2, 17, 39, 38, 5, 5, 20, 21, 22, 23, 24, 25, 26, 27, 28};
    for (std::size_t i = 0; i < 5; ++i) loader.order(numbers[i]);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (i + 5 < numbers.size()) loader.order(numbers[i + 5]);
      EXPECT_THAT(loader.next().values, testing::ElementsAreArray(job[static_cast<std::size_t>(numbers[i])])) << i;
    }
    for (const std::int64_t unwanted : {3, 4, 6, 7, 8, 9, 10, 11, 12, 13}) loader.order(unwanted);
    loader.forget_orders();
    loader.order(33);
    EXPECT_THAT(loader.next().values, testing::ElementsAreArray(job[33]));
  }
}

TEST(BatchLoader, GoesOnWithAnyStep) {
  const CountingDataset dataset(50);
  const BatchOrder order{.seed = 3, .dataset_size = 50, .batch_size = 4, .rank = 1, .workers = 2};
  BatchLoader straight(dataset, order), sought(dataset, order);
  std::vector<std::vector<float>> batches;
  for (int step = 0; step < 20; ++step) {
    const std::span<const float> values = straight.next().values;
    batches.emplace_back(values.begin(), values.end());
  }
  for (const std::int64_t step : {0, 13, 13, 6, 5, 18, 0}) {
    sought.seek(step);
    for (std::int64_t i = step; i < std::min<std::int64_t>(step + 2, 20); ++i) {
      EXPECT_THAT(sought.next().values, testing::ElementsAreArray(batches[static_cast<std::size_t>(i)])) << i;
    }
  }
}

}  // namespace
}  // namespace syncopate::worker
