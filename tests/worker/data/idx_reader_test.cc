#include "worker/data/idx_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/data/scratch_folder.h"

namespace syncopate::worker {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class IdxReader : public testing::Test {
 protected:
  // Opens these contents as images and labels.
  Result<std::unique_ptr<ImageDataset>> open(const Bytes& images, const Bytes& labels) {
    return open_idx(folder_.write("images", images), folder_.write("labels", labels));
  }
  void expect_data_loss(const Bytes& images, const Bytes& labels, const std::string& file, const std::string& what) {
    const Status status = open(images, labels).status();
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(folder_.path(file)), HasSubstr(what)));
  }
  void expect_bad_images(const Bytes& images, const std::string& what) {
    expect_data_loss(images, three_labels(), "images", what);
  }
  void expect_bad_labels(const Bytes& labels, const std::string& what) {
    expect_data_loss(three_images(), labels, "labels", what);
  }

  ScratchFolder folder_;
};

TEST_F(IdxReader, GivesImagesAndLabels) {
  const auto dataset = open(three_images(), three_labels());
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  const ImageDataset& data = **dataset;
  EXPECT_EQ(data.size(), 3);
  EXPECT_EQ(data.shape(), (ImageShape{2, 3, 1}));
  EXPECT_EQ(data.form().classes, 10);
  Bytes scratch(6);
  EXPECT_THAT(data.image(0, scratch), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(data.image(2, scratch), ElementsAre(12, 13, 14, 15, 16, 17));
  EXPECT_EQ(data.label(0), 7);
  EXPECT_EQ(data.label(2), 9);
}

TEST_F(IdxReader, GivesTheSameFromGzip) {
  const auto dataset =
      open_idx(folder_.write_gz("images.gz", three_images()), folder_.write_gz("labels.gz", three_labels()));
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  Bytes scratch(6);
  EXPECT_THAT((*dataset)->image(1, scratch), ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_EQ((*dataset)->label(2), 9);
}

TEST_F(IdxReader, InflatesLargeFiles) {
  Bytes pixels(1000 * 28 * 28);
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * i >> 7);
  const auto dataset = open_idx(folder_.write_gz("images.gz", idx({0x803, 1000, 28, 28}, pixels)),
                                folder_.write("labels", idx({0x801, 1000}, Bytes(1000, 5))));
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  Bytes scratch(28 * 28);
  const auto last = (*dataset)->image(999, scratch);
  EXPECT_TRUE(std::equal(last.begin(), last.end(), pixels.end() - 28 * 28));
}

TEST_F(IdxReader, NamesAMissingFile) {
  const Status status = open_idx(folder_.path("none"), folder_.write("labels", three_labels())).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), AllOf(HasSubstr(folder_.path("none")), HasSubstr("No such file")));
}

TEST_F(IdxReader, RefusesAFolder) {
  EXPECT_EQ(open_idx(folder_.path(), folder_.path()).status().code(), Code::kNotFound);
}

TEST_F(IdxReader, RefusesAnotherMagic) {
  expect_bad_images(three_labels(), "truncated: 11 bytes, the header alone has 16");
  expect_bad_images(idx({0x802, 3, 2, 3}, Bytes(18)), "magic 0x00000802, expected 0x00000803");
  expect_bad_labels(three_images(), "magic 0x00000803, expected 0x00000801");
}

TEST_F(IdxReader, RefusesAFileThatIsCutShortAnywhere) {
  const Bytes images = three_images(), labels = three_labels();
  for (std::size_t size = 1; size < images.size(); ++size) {
    expect_bad_images(Bytes(images.begin(), images.begin() + static_cast<std::ptrdiff_t>(size)), "truncated");
  }
  for (std::size_t size = 1; size < labels.size(); ++size) {
    expect_bad_labels(Bytes(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(size)), "truncated");
  }
  expect_bad_images({}, "is empty");
}

TEST_F(IdxReader, RefusesTrailingBytes) {
  Bytes images = three_images(), labels = three_labels();
  images.push_back(0);
  labels.push_back(0);
  expect_bad_images(images, "trailing bytes: 35 bytes, expected 34 (3 images of 2x3)");
  expect_bad_labels(labels, "trailing bytes: 12 bytes, expected 11 (3 labels)");
}

TEST_F(IdxReader, RefusesDimensionsThatCannotBe) {
  expect_bad_images(idx({0x803, 0, 2, 3}, {}), "holds 0 images");
  expect_bad_images(idx({0x803, 3, 0, 3}, {}), "images of 0x3 pixels");
  expect_bad_images(idx({0x803, 3, 2, 0x80000000}, {}), "images of 2x2147483648 pixels");
  // 2^32 - 1 images of 4096x4096: the product must not wrap around to something small.
  expect_bad_images(idx({0x803, 0xFFFFFFFF, 4096, 4096}, Bytes(18)), "expected 72057594021150736");
}

TEST_F(IdxReader, RefusesAnotherCountOfLabels) { expect_bad_labels(idx({0x801, 2}, {7, 0}), "2 labels, expected 3"); }

TEST_F(IdxReader, RefusesALabelOutOfRange) {
  expect_bad_labels(idx({0x801, 3}, {7, 10, 9}), "label 10 of sample 1, expected 0 to 9");
}

class GzipReader : public IdxReader {
 protected:
  void expect_bad_gzip(const Bytes& compressed, const std::string& what) {
    const std::string images = folder_.write("images.gz", compressed);
    const Status status = open_idx(images, folder_.write("labels", three_labels())).status();
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(images), HasSubstr(what)));
  }
  Bytes compressed() { return ScratchFolder::read(folder_.write_gz("sound.gz", three_images())); }
};

TEST_F(GzipReader, RefusesAStreamThatIsCutShortAnywhere) {
  const Bytes whole = compressed();
  for (std::size_t size = 1; size < whole.size(); ++size) {
    expect_bad_gzip(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)), "truncated");
  }
}

TEST_F(GzipReader, RefusesWhatIsNotGzip) { expect_bad_gzip(three_images(), "not a sound gzip stream"); }

TEST_F(GzipReader, RefusesADamagedChecksum) {
  Bytes damaged = compressed();
  damaged[damaged.size() - 6] ^= 1;
  expect_bad_gzip(damaged, "incorrect data check");
}

// As gzip and bgzip leave files that were appended to each other, or compressed by parts.
TEST_F(GzipReader, ReadsSeveralStreamsOneBehindTheOther) {
  const Bytes all = three_images();
  const auto half = all.begin() + 11;
  Bytes streams = ScratchFolder::read(folder_.write_gz("first.gz", Bytes(all.begin(), half)));
  const Bytes second = ScratchFolder::read(folder_.write_gz("second.gz", Bytes(half, all.end())));
  streams.insert(streams.end(), second.begin(), second.end());
  const auto dataset = open_idx(folder_.write("images.gz", streams), folder_.write_gz("labels.gz", three_labels()));
  ASSERT_TRUE(dataset.ok()) << dataset.status().message();
  EXPECT_EQ((*dataset)->size(), 3);
  streams.pop_back();
  expect_bad_gzip(streams, "truncated");
}

TEST_F(GzipReader, RefusesTrailingBytes) {
  Bytes longer = compressed();
  longer.push_back(0);
  expect_bad_gzip(longer, "1 bytes follow the end of the gzip stream");
}

}  // namespace
}  // namespace syncopate::worker
