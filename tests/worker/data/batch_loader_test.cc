#include "worker/data/batch_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

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

TEST(Normalize, MapsBytesToTheUnitIntervalIfAsked) {
  std::vector<std::uint8_t> bytes(256);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
  std::vector<float> values(256);
  normalize(bytes, values, PixelScale::kUnit);
  for (std::size_t i = 0; i < values.size(); ++i) EXPECT_EQ(values[i], static_cast<float>(i) / 255.0f);
}

// Which sample of a CountingDataset lies at place `i`.
std::int64_t sample_at(const BatchView& batch, std::size_t i) {
  const auto byte_of = [](float value) { return std::lround((value + 0.3f) * 255.0f / 2.0f); };
  return byte_of(batch.values[2 * i]) + 256 * byte_of(batch.values[2 * i + 1]);
}

// The samples of the next `batches` batches, those of empty places left out.
std::vector<std::int64_t> samples_of(BatchLoader& loader, std::int64_t batches) {
  std::vector<std::int64_t> samples;
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    const BatchView view = loader.next();
    for (std::size_t i = 0; i + static_cast<std::size_t>(view.empty_places) < view.labels.size(); ++i) {
      samples.push_back(sample_at(view, i));
    }
  }
  return samples;
}

std::vector<std::int64_t> ascending(std::int64_t from, std::int64_t to, std::int64_t step = 1) {
  std::vector<std::int64_t> values;
  for (std::int64_t value = from; value < to; value += step) values.push_back(value);
  return values;
}

std::vector<std::int64_t> sorted(std::vector<std::int64_t> values) {
  std::ranges::sort(values);
  return values;
}

TEST(BatchLoader, DealsTheSetOutInItsOwnOrderInEachEpochIfItIsNotToShuffle) {
  const CountingDataset dataset(1000);
  for (const int rank : {0, 1}) {
    const BatchOrder order{
        .dataset_size = 1000, .batch_size = 10, .rank = rank, .workers = 2, .shuffle = Shuffle::kOff};
    BatchLoader loader(dataset, order);
    for (int epoch = 0; epoch < 3; ++epoch) {
      EXPECT_EQ(samples_of(loader, order.steps_per_epoch()), ascending(rank, 1000, 2)) << epoch;
    }
  }
}

TEST(BatchLoader, PermutesEachWorkersShardAlone) {
  const CountingDataset dataset(999);
  for (const int rank : {0, 1, 2}) {
    const BatchOrder order{
        .dataset_size = 999, .batch_size = 9, .rank = rank, .workers = 3, .shuffle = Shuffle::kShard};
    BatchLoader loader(dataset, order);
    const std::vector<std::int64_t> first = samples_of(loader, order.steps_per_epoch()),
                                    second = samples_of(loader, order.steps_per_epoch());
    EXPECT_EQ(sorted(first), ascending(rank, 999, 3));
    EXPECT_EQ(sorted(second), ascending(rank, 999, 3));
    EXPECT_NE(first, second);
    EXPECT_NE(first, ascending(rank, 999, 3));
  }
}

TEST(BatchLoader, GivesEachWorkerTheWholeSetInAnOrderOfItsOwn) {
  const CountingDataset dataset(1003);
  std::vector<std::vector<std::int64_t>> passes;
  for (const int rank : {0, 1}) {
    const BatchOrder order{
        .dataset_size = 1003, .batch_size = 10, .rank = rank, .workers = 2, .shuffle = Shuffle::kWorker};
    BatchLoader loader(dataset, order);
    for (int pass = 0; pass < 2; ++pass) {
      passes.push_back(samples_of(loader, 100));
      std::vector<std::int64_t> once = sorted(passes.back());
      EXPECT_TRUE(std::ranges::adjacent_find(once) == once.end()) << "a sample came twice in a pass";
    }
    BatchLoader sought(dataset, order);
    sought.seek(100);
    EXPECT_EQ(samples_of(sought, 100), passes.back());
  }
  EXPECT_EQ(std::set(passes.begin(), passes.end()).size(), passes.size());
}

// Over W workers the mean of (weight x sum over the places / places) is the mean over the samples of the global batch.
TEST(BatchLoader, GivesWhatIsLeftOfAnEpochAsABatchWithEmptyPlacesIfItIsNotDropped) {
  const CountingDataset dataset(1003);
  for (const int workers : {1, 2, 3, 4}) {
    std::vector<std::int64_t> all, last;
    double mean = 0;
    for (int rank = 0; rank < workers; ++rank) {
      const BatchOrder order{
          .dataset_size = 1003, .batch_size = 24 / workers, .rank = rank, .workers = workers, .drop_last = false};
      ASSERT_EQ(order.steps_per_epoch(), 42);
      BatchLoader loader(dataset, order);
      const std::vector<std::int64_t> full = samples_of(loader, 41);
      EXPECT_EQ(full.size(), 41u * 24u / static_cast<std::size_t>(workers));
      all.insert(all.end(), full.begin(), full.end());
      const BatchView view = loader.next();
      EXPECT_DOUBLE_EQ(view.weight, 24.0 / 19.0);
      double sum = 0;
      for (std::size_t i = 0; i < view.labels.size(); ++i) {
        if (i + static_cast<std::size_t>(view.empty_places) >= view.labels.size()) {
          EXPECT_EQ(view.labels[i], -1);
          EXPECT_EQ(view.values[2 * i], 0);
        } else {
          all.push_back(sample_at(view, i));
          last.push_back(sample_at(view, i));
          sum += static_cast<double>(sample_at(view, i));
        }
      }
      mean += view.weight * sum / static_cast<double>(view.labels.size()) / workers;
      EXPECT_EQ(loader.next().empty_places, 0) << "of the next epoch";
    }
    EXPECT_EQ(last.size(), 19u);
    EXPECT_EQ(sorted(all), ascending(0, 1003));
    EXPECT_NEAR(mean, static_cast<double>(std::accumulate(last.begin(), last.end(), std::int64_t{0})) / 19, 1e-9);
  }
}

// The same sample costs the same in every epoch, whoever trains it; an empty place nothing.
TEST(BatchLoader, SaysWhatEachSampleCostsToWhomeverItIsDealt) {
  const CountingDataset dataset(21);
  const SampleCosts costs = *SampleCosts::parse("zipf");
  for (const int workers : {1, 2}) {
    for (int rank = 0; rank < workers; ++rank) {
      const BatchOrder order{.seed = 5,
                             .dataset_size = 21,
                             .batch_size = 4,
                             .rank = rank,
                             .workers = workers,
                             .costs = costs,
                             .drop_last = false};
      BatchLoader loader(dataset, order);
      for (std::int64_t step = 0; step < 2 * order.steps_per_epoch(); ++step) {
        const BatchView batch = loader.next();
        ASSERT_EQ(batch.costs.size(), 4u);
        double sum = 0;
        const std::vector<std::int64_t> taken =
            indices(order, permutation(5, step / order.steps_per_epoch(), 21), step % order.steps_per_epoch());
        for (std::size_t i = 0; i < 4; ++i) {
          EXPECT_EQ(batch.costs[i], taken[i] < 0 ? 0 : static_cast<float>(costs.of(5, taken[i])));
          sum += batch.costs[i];
        }
        EXPECT_DOUBLE_EQ(cost_of(batch), sum / 4);
      }
    }
  }
  BatchLoader equal(dataset, {.dataset_size = 21, .batch_size = 4});
  EXPECT_TRUE(equal.next().costs.empty());
  EXPECT_EQ(cost_of({}), 1);
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
