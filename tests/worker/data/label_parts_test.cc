#include "worker/data/label_parts.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "common/random.h"
#include "worker/data/batch_loader.h"
#include "worker/data/blank_samples.h"
#include "worker/data/image_dataset.h"

namespace syncopate::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Sample i is one image of 1x2 pixels, (i mod 256, i div 256), with the label that is given.
class LabelledPixels final : public ImageDataset {
 public:
  explicit LabelledPixels(std::vector<int> labels) : ImageDataset({1, 2, 1}, 10), labels_(std::move(labels)) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  std::span<const std::uint8_t> image(std::int64_t index, std::span<std::uint8_t> scratch) const override {
    scratch[0] = static_cast<std::uint8_t>(index % 256);
    scratch[1] = static_cast<std::uint8_t>(index / 256);
    return scratch.first(2);
  }
  int label(std::int64_t index) const override { return labels_[static_cast<std::size_t>(index)]; }

 private:
  const std::vector<int> labels_;
};

std::vector<int> drawn_labels(std::size_t count, int classes, std::uint64_t seed) {
  Random random(seed);
  std::vector<int> labels;
  for (std::size_t i = 0; i < count; ++i) {
    labels.push_back(static_cast<int>(random.below(static_cast<std::uint64_t>(classes))));
  }
  return labels;
}

TEST(PartsByLabel, CutTheSortedSamplesIntoEqualParts) {
  // Sorted: samples 1 and 4 (label 0), 3 and 5 (label 1), 0 and 2 (label 2).
  EXPECT_THAT(parts_by_label(std::vector{2, 0, 2, 1, 0, 1}, 3), ElementsAre(2, 0, 2, 1, 0, 1));
  EXPECT_THAT(parts_by_label(std::vector{2, 0, 2, 1, 0, 1}, 2), ElementsAre(1, 0, 1, 0, 0, 1));
  EXPECT_THAT(parts_by_label(std::vector{2, 0, 2, 1, 0, 1}, 1), ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(PartsByLabel, DifferByAtMostOneSampleAndFollowTheLabels) {
  for (const std::size_t count : {10u, 100u, 997u}) {
    for (const int workers : {1, 2, 3, 7, 10}) {
      const std::vector<int> labels = drawn_labels(count, 10, count);
      const SampleParts parts = parts_by_label(labels, workers);
      std::vector<int> sizes(static_cast<std::size_t>(workers));
      for (const int part : parts) ++sizes.at(static_cast<std::size_t>(part));
      EXPECT_LE(std::ranges::max(sizes) - std::ranges::min(sizes), 1) << count << " samples, " << workers;
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t k = 0; k < count; ++k) {
          if (labels[i] < labels[k]) ASSERT_LE(parts[i], parts[k]);
        }
      }
    }
  }
}

TEST(PartsByLabel, OfDataWithoutLabelsAreRefused) {
  EXPECT_THAT(parts_by_label(BlankSamples(4), 2).status().message(), HasSubstr("no label to divide them by"));
}

TEST(PartsByLabel, OfEqualLabelsAreOneCopy) {
  const LabelledPixels data(drawn_labels(100, 10, 1)), same(drawn_labels(100, 10, 1)), other(drawn_labels(100, 10, 2));
  const auto parts = *parts_by_label(data, 4);
  EXPECT_EQ(parts, *parts_by_label(same, 4));
  EXPECT_NE(parts, *parts_by_label(other, 4));
  EXPECT_NE(parts, *parts_by_label(data, 5));
}

TEST(InterleavedParts, GiveEveryWthPlaceToAPartInThePermutationsOrder) {
  std::vector<std::int64_t> permutation{4, 0, 6, 3, 1, 5, 2};
  interleave_parts({0, 1, 0, 1, 0, 1, 0}, 2, permutation);
  // Part 0 comes as 4, 0, 6, 2 and part 1 as 3, 1, 5; the last of part 0 has no partner.
  EXPECT_THAT(permutation, ElementsAre(4, 3, 0, 1, 6, 5, 2));
}

TEST(InterleavedParts, LeaveThePermutationOfOneWorkerAsItIs) {
  std::vector<std::int64_t> permutation(50), expected(50);
  epoch_permutation(3, 1, permutation);
  epoch_permutation(3, 1, expected);
  interleave_parts(SampleParts(50, 0), 1, permutation);
  EXPECT_EQ(permutation, expected);
}

// Plain loops: what worker `rank` trains in an epoch is the epoch's permutation without what is another's.
std::vector<std::int64_t> own_samples(const BatchOrder& order, std::int64_t epoch) {
  std::vector<std::int64_t> permutation(static_cast<std::size_t>(order.dataset_size)), own;
  epoch_permutation(order.seed, epoch, permutation);
  for (const std::int64_t sample : permutation) {
    if ((*order.parts)[static_cast<std::size_t>(sample)] == order.rank) own.push_back(sample);
  }
  return own;
}

TEST(ALoaderOfLabels, DrawsItsOwnPartAloneInTheEpochsOrder) {
  const LabelledPixels data(drawn_labels(1003, 10, 7));
  for (const int workers : {1, 3, 4}) {
    for (int rank = 0; rank < workers; ++rank) {
      const BatchOrder order{.seed = 5,
                             .dataset_size = data.size(),
                             .batch_size = 16,
                             .rank = rank,
                             .workers = workers,
                             .parts = *parts_by_label(data, workers)};
      BatchLoader loader(data, order);
      for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
        const std::vector<std::int64_t> own = own_samples(order, epoch);
        for (std::int64_t step = 0; step < order.steps_per_epoch(); ++step) {
          const BatchView batch = loader.next();
          for (std::size_t i = 0; i < 16; ++i) {
            const std::int64_t sample = own[static_cast<std::size_t>(step) * 16 + i];
            std::vector<float> pixels(2);
            const std::vector<std::uint8_t> bytes{static_cast<std::uint8_t>(sample % 256),
                                                  static_cast<std::uint8_t>(sample / 256)};
            normalize(bytes, pixels);
            ASSERT_EQ(batch.values[2 * i], pixels[0]);
            ASSERT_EQ(batch.values[2 * i + 1], pixels[1]);
            ASSERT_EQ(batch.labels[i], data.label(sample));
          }
        }
      }
    }
  }
}

TEST(ALoaderOfLabels, SeesEverySampleOnceAnEpochTogetherWithTheOthers) {
  const LabelledPixels data(drawn_labels(960, 10, 9));
  const int workers = 4;
  std::map<std::pair<float, float>, int> seen;
  std::vector<std::set<int>> labels(4);
  for (int rank = 0; rank < workers; ++rank) {
    BatchLoader loader(data, {.dataset_size = 960,
                              .batch_size = 24,
                              .rank = rank,
                              .workers = workers,
                              .parts = *parts_by_label(data, workers)});
    for (int step = 0; step < 10; ++step) {
      const BatchView batch = loader.next();
      for (std::size_t i = 0; i < 24; ++i) {
        ++seen[{batch.values[2 * i], batch.values[2 * i + 1]}];
        labels[static_cast<std::size_t>(rank)].insert(batch.labels[i]);
      }
    }
  }
  EXPECT_EQ(seen.size(), 960u);
  EXPECT_TRUE(std::ranges::all_of(seen, [](const auto& sample) { return sample.second == 1; }));
  // Ten labels over four workers, two and a half each: no worker sees more than four.
  for (const std::set<int>& own : labels) EXPECT_LE(own.size(), 4u);
}

}  // namespace
}  // namespace syncopate::worker
