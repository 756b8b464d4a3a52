#include "worker/data/cifar_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "common/random.h"
#include "tests/worker/data/scratch_folder.h"

namespace syncopate::worker {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::size_t kRecord = 3073;

// Two records: labels `first` and first + 1; red is the pixel's number, green its row, blue the record.
Bytes two_records(std::uint8_t first) {
  Bytes bytes(2 * kRecord);
  for (std::size_t record = 0; record < 2; ++record) {
    std::uint8_t* const start = &bytes[record * kRecord];
    start[0] = static_cast<std::uint8_t>(first + record);
    for (std::size_t pixel = 0; pixel < 1024; ++pixel) {
      start[1 + pixel] = static_cast<std::uint8_t>(pixel);
      start[1 + 1024 + pixel] = static_cast<std::uint8_t>(pixel / 32);
      start[1 + 2048 + pixel] = static_cast<std::uint8_t>(first + record);
    }
  }
  return bytes;
}

class CifarReader : public testing::Test {
 protected:
  void expect_data_loss(const Bytes& content, const std::string& what) {
    const std::vector<std::string> paths = {folder_.write("sound", two_records(0)), folder_.write("bad", content)};
    const Status status = open_cifar10(paths, 2).status();
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(paths[1]), HasSubstr(what)));
  }

  ScratchFolder folder_;
};

TEST_F(CifarReader, GivesChannelsTogetherAndFilesOneAfterAnother) {
  const std::vector<std::string> paths = {folder_.write("a", two_records(0)), folder_.write("b", two_records(5))};
  const auto dataset = open_cifar10(paths, 2);
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  const ImageDataset& data = **dataset;
  EXPECT_EQ(data.size(), 4);
  EXPECT_EQ(data.shape(), (ImageShape{32, 32, 3}));
  const std::uint8_t labels[] = {0, 1, 5, 6};
  Bytes scratch(3072);
  for (std::int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(data.label(i), labels[i]);
    const auto image = data.image(i, scratch);
    ASSERT_EQ(image.size(), 3072u);
    for (std::size_t pixel = 0; pixel < 1024; ++pixel) {
      ASSERT_EQ(image[3 * pixel], static_cast<std::uint8_t>(pixel));
      ASSERT_EQ(image[3 * pixel + 1], pixel / 32);
      ASSERT_EQ(image[3 * pixel + 2], labels[i]);
    }
  }
}

std::vector<float> values_of(const Dataset& data, std::int64_t index, std::int64_t epoch) {
  std::vector<float> values(3072, -99.0f);
  int label = -1;
  data.read(index, epoch, {.values = values, .labels = {&label, 1}});
  EXPECT_EQ(label, index);
  return values;
}

Bytes drawn_records() {
  Bytes bytes = two_records(0);
  Random random(3);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i % kRecord != 0) bytes[i] = static_cast<std::uint8_t>(random.next());
  }
  return bytes;
}

// Plainly: the image is normalised, put into 40x40 zeros, cut out of them, and turned round.
std::vector<float> shown(const Bytes& bytes, std::size_t index, const Crop& crop) {
  std::vector<float> padded(40 * 40 * 3), values(32 * 32 * 3);
  for (std::size_t y = 0; y < 32; ++y) {
    for (std::size_t x = 0; x < 32; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        const double value = bytes[index * kRecord + 1 + c * 1024 + y * 32 + x] / 255.0;
        padded[((y + 4) * 40 + x + 4) * 3 + c] = static_cast<float>((value - kCifarMean[c]) / kCifarDeviation[c]);
      }
    }
  }
  for (std::size_t y = 0; y < 32; ++y) {
    for (std::size_t x = 0; x < 32; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        const std::size_t row = y + static_cast<std::size_t>(crop.top),
                          column = x + static_cast<std::size_t>(crop.left);
        values[(y * 32 + (crop.flipped ? 31 - x : x)) * 3 + c] = padded[(row * 40 + column) * 3 + c];
      }
    }
  }
  return values;
}

TEST_F(CifarReader, NormalisesEachChannelByTheMeanAndDeviationOfTheTrainingSet) {
  const Bytes bytes = drawn_records();
  const auto data = open_cifar10(std::vector{folder_.write("a", bytes)}, 2);
  ASSERT_TRUE(data.ok());
  for (const std::int64_t epoch : {0, 5}) {
    const std::vector<float> values = values_of(**data, 1, epoch), expected = shown(bytes, 1, Crop());
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], expected[i], 1e-5f) << i;
  }
}

TEST_F(CifarReader, ShowsTheDrawnCropOfTheImageInPaddingAndItsMirrorImage) {
  const Bytes bytes = drawn_records();
  const auto data = open_cifar10(std::vector{folder_.write("a", bytes)}, 2, 7);
  ASSERT_TRUE(data.ok());
  std::map<std::pair<int, int>, int> places;
  int flipped = 0;
  for (std::int64_t epoch = 0; epoch < 1000; ++epoch) {
    const Crop crop = draw_crop(7, epoch, 1);
    ++places[{crop.top, crop.left}];
    flipped += crop.flipped ? 1 : 0;
    const std::vector<float> values = values_of(**data, 1, epoch), expected = shown(bytes, 1, crop);
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], expected[i], 1e-5f) << epoch << " " << i;
  }
  EXPECT_EQ(places.size(), 81u);
  for (const auto& [place, times] : places) EXPECT_LT(times, 40) << place.first << " " << place.second;
  EXPECT_NEAR(flipped, 500, 100);
}

TEST_F(CifarReader, ShowsAnImageAsItIsWhereItIsReadPlain) {
  const Bytes bytes = drawn_records();
  const auto cropped = open_cifar10(std::vector{folder_.write("a", bytes)}, 2, 7);
  ASSERT_TRUE(cropped.ok());
  ASSERT_NE(draw_crop(7, 0, 1), Crop()) << "epoch 0 would show another";
  std::vector<float> values(3072, -99.0f);
  int label = -1;
  (*cropped)->read_plain(1, {.values = values, .labels = {&label, 1}});
  const std::vector<float> expected = shown(bytes, 1, Crop());
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], expected[i], 1e-5f) << i;
}

TEST(DrawCrop, DependsOnSeedEpochAndImageAlone) {
  EXPECT_EQ(draw_crop(1, 2, 3), draw_crop(1, 2, 3));
  int same[3] = {};
  for (std::int64_t i = 0; i < 100; ++i) {
    same[0] += draw_crop(1, 2, i) == draw_crop(2, 2, i) ? 1 : 0;
    same[1] += draw_crop(1, 2, i) == draw_crop(1, 3, i) ? 1 : 0;
    same[2] += draw_crop(1, 2, i) == draw_crop(1, 2, i + 1) ? 1 : 0;
  }
  for (const int times : same) EXPECT_LT(times, 15);
}

TEST_F(CifarReader, RefusesAnotherSize) {
  Bytes content = two_records(0);
  content.push_back(0);
  expect_data_loss(content, "trailing bytes: 6147 bytes, expected 6146 (2 records of 3073)");
  content.resize(kRecord);
  expect_data_loss(content, "truncated: 3073 bytes, expected 6146");
}

TEST_F(CifarReader, RefusesALabelOutOfRange) { expect_data_loss(two_records(9), "label 10 of record 1"); }

TEST_F(CifarReader, NamesAMissingFile) {
  const std::vector<std::string> paths = {folder_.path("none.bin")};
  const Status status = open_cifar10(paths).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr(paths[0]));
}

}  // namespace
}  // namespace syncopate::worker
