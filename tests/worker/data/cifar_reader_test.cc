#include "worker/data/cifar_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
