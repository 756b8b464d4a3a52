#include "worker/data/own/image_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <jpeglib.h>
#include <png.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/worker/data/own/own_data.h"
#include "worker/data/open_dataset.h"
#include "worker/data/own/image_file.h"

namespace syncopate::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Bytes png_of(int height, int width, std::uint32_t format, const Bytes& pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<std::uint32_t>(height);
  image.width = static_cast<std::uint32_t>(width);
  image.format = format;
  png_alloc_size_t size = 0;
  ::png_image_write_to_memory(&image, nullptr, &size, 0, pixels.data(), 0, nullptr);
  Bytes bytes(size);
  EXPECT_NE(::png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.data(), 0, nullptr), 0);
  bytes.resize(size);
  return bytes;
}

Bytes jpeg_of(int height, int width, int channels, const Bytes& pixels) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = ::jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  ::jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.image_width = static_cast<JDIMENSION>(width);
  jpeg.input_components = channels;
  jpeg.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  ::jpeg_set_defaults(&jpeg);
  ::jpeg_set_quality(&jpeg, 100, TRUE);
  ::jpeg_start_compress(&jpeg, TRUE);
  for (int y = 0; y < height; ++y) {
    JSAMPROW row = const_cast<JSAMPROW>(pixels.data()) + y * width * channels;
    ::jpeg_write_scanlines(&jpeg, &row, 1);
  }
  ::jpeg_finish_compress(&jpeg);
  ::jpeg_destroy_compress(&jpeg);
  Bytes bytes(memory, memory + size);
  std::free(memory);
  return bytes;
}

Bytes shades(int height, int width, int channels) {
  Bytes pixels(static_cast<std::size_t>(height * width * channels));
  for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(40 + 3 * (i % 50));
  return pixels;
}

class ImageFolder : public testing::Test {
 protected:
  Result<DatasetPair> open(const OwnOptions& options = {.normalisation = Normalisation::kNone}) {
    return open_dataset(folder_.path("set/"), "nowhere", 1, options);
  }
  std::string refusal(const OwnOptions& options = {}) { return open(options).status().message(); }

  ScratchFolder folder_;
};

TEST_F(ImageFolder, HasAClassForEachFolderAndBothParts) {
  const Bytes grey = shades(4, 5, 1);
  for (const char* part : {"train", "test"}) {
    for (const char* name : {"daisy/1.png", "rose/1.PNG", "rose/.hidden", "rose/notes.txt"}) {
      folder_.write(fmt::format("set/{}/{}", part, name), png_of(4, 5, PNG_FORMAT_GRAY, grey));
    }
  }
  const Result<DatasetPair> pair = open();
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  EXPECT_THAT(pair->train->class_names(), ElementsAre("daisy", "rose"));
  EXPECT_EQ(pair->train->size(), 2);
  EXPECT_EQ(pair->test->size(), 2);
  EXPECT_EQ(pair->train->form().image, (ImageShape{4, 5, 1}));
  const Sample sample = sample_of(*pair->train, 1);
  EXPECT_EQ(sample.values, std::vector<float>(grey.begin(), grey.end()));
  EXPECT_EQ(sample.labels, std::vector<int>{1});
}

TEST_F(ImageFolder, HasOneTestPartOfAnyUsualNameAndNothingElseBeside) {
  const Bytes png = png_of(4, 5, PNG_FORMAT_GRAY, shades(4, 5, 1));
  const auto write_part = [&](const std::string& part) {
    for (const char* name : {"a/1.png", "b/1.png"}) folder_.write(fmt::format("set/{}/{}", part, name), png);
  };
  write_part("train");
  for (const char* part : {"test", "val", "valid", "validation"}) {
    write_part(part);
    const Result<DatasetPair> pair = open();
    ASSERT_TRUE(pair.ok()) << pair.status().message();
    EXPECT_EQ(pair->train->size(), 2) << part;
    EXPECT_EQ(pair->test->size(), 2) << part;
    std::filesystem::remove_all(folder_.path(fmt::format("set/{}", part)));
  }
  write_part("test");
  write_part("valid");
  EXPECT_THAT(refusal(), HasSubstr("set: has train/ and test/, valid/ with it, expected one test part"));
  std::filesystem::remove_all(folder_.path("set/valid"));
  write_part("extra");
  EXPECT_THAT(refusal(), HasSubstr("set/train --test-data=" + folder_.path("set/test")));
  EXPECT_TRUE(open_dataset(folder_.path("set/train"), "nowhere", 1, {.test_data = folder_.path("set/test")}).ok());
}

TEST_F(ImageFolder, MayHaveAClassThatIsCalledTrain) {
  const Bytes png = png_of(4, 5, PNG_FORMAT_GRAY, shades(4, 5, 1));
  for (const char* name : {"bus/1.png", "bus/2.png", "train/1.png", "train/2.png"}) {
    folder_.write(fmt::format("set/{}", name), png);
  }
  const Result<DatasetPair> pair = open();
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  EXPECT_THAT(pair->train->class_names(), ElementsAre("bus", "train"));
  // Beside a test part it is no class, whatever lies in it.
  folder_.write("set/test/1.png", png);
  EXPECT_FALSE(open().ok());
}

TEST_F(ImageFolder, ReadsJpegAndGivesGreyImagesThreeChannelsAmongColouredOnes) {
  const Bytes colour(5 * 4 * 3, 90), grey(5 * 4, 90);
  folder_.write("set/a/1.jpg", jpeg_of(5, 4, 3, colour));
  folder_.write("set/a/2.jpeg", jpeg_of(5, 4, 1, grey));
  folder_.write("set/b/1.png", png_of(5, 4, PNG_FORMAT_RGBA, Bytes(5 * 4 * 4, 255)));
  folder_.write("set/b/2.png", png_of(5, 4, PNG_FORMAT_GRAY, grey));
  const Result<DatasetPair> pair = open();
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  EXPECT_EQ(pair->train->form().image, (ImageShape{5, 4, 3}));
  EXPECT_EQ(pair->train->size(), 3);
  for (const Dataset* part : {pair->train.get(), pair->test.get()}) {
    for (std::int64_t i = 0; i < part->size(); ++i) {
      for (const float value : sample_of(*part, i).values) EXPECT_TRUE(std::abs(value - 90) < 3 || value == 255);
    }
  }
}

TEST_F(ImageFolder, ScalesImagesOfDifferentSizes) {
  folder_.write("set/a/1.png", png_of(8, 8, PNG_FORMAT_GRAY, Bytes(64, 50)));
  folder_.write("set/a/2.png", png_of(3, 9, PNG_FORMAT_GRAY, Bytes(27, 50)));
  folder_.write("set/b/1.png", png_of(8, 8, PNG_FORMAT_GRAY, Bytes(64, 50)));
  folder_.write("set/b/2.png", png_of(7, 7, PNG_FORMAT_GRAY, Bytes(49, 50)));
  EXPECT_THAT(refusal(), HasSubstr("set/a/2.png: 3x9, and"));
  EXPECT_THAT(refusal(), HasSubstr("--image-size=N scales all to one size"));
  const Result<DatasetPair> pair = open({.normalisation = Normalisation::kNone, .image_size = 6});
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  EXPECT_EQ(pair->train->form().image, (ImageShape{6, 6, 1}));
  EXPECT_THAT(sample_of(*pair->train, 0).values, testing::Each(50.0f));
}

TEST(ScaledImage, IsTheMeanOfWhatAPixelCovers) {
  const DecodedImage image{.shape = {2, 4, 1}, .pixels = {0, 100, 200, 100, 0, 100, 200, 100}};
  EXPECT_EQ(scaled_image(image, 2, 4).pixels, image.pixels);
  const DecodedImage half = scaled_image(image, 1, 2);
  EXPECT_EQ(half.shape, (ImageShape{1, 2, 1}));
  EXPECT_NEAR(half.pixels[0], 71, 1);  // tents of two pixels on each side: 3 to 3 to 1 of 0, 100 and 200
  EXPECT_NEAR(half.pixels[1], 143, 1);
}

TEST_F(ImageFolder, IsRefusedWithTheFile) {
  const Bytes png = png_of(4, 5, PNG_FORMAT_GRAY, shades(4, 5, 1)), jpeg = jpeg_of(16, 16, 3, shades(16, 16, 3));
  folder_.write("set/a/1.png", png);
  EXPECT_THAT(refusal(), HasSubstr("has one folder, expected one for each of two or more classes"));
  folder_.write("set/b/none.txt", png);
  EXPECT_THAT(refusal(), HasSubstr("set/b: has no *.png"));
  for (const Bytes* sound : {&png, &jpeg}) {
    for (std::size_t size = 0; size < sound->size() - 20; size += 5) {  // all pixels stand before the last twenty
      folder_.write("set/b/1.png", Bytes(sound->begin(), sound->begin() + static_cast<std::ptrdiff_t>(size)));
      EXPECT_THAT(refusal(), HasSubstr("set/b/1.png: ")) << size;
    }
  }
  Bytes huge = png;
  huge[16] = 0x7f;  // the first byte of the width
  folder_.write("set/b/1.png", huge);
  EXPECT_THAT(refusal(), HasSubstr("set/b/1.png: no sound PNG"));
  folder_.write("set/b/1.png", {1, 2, 3});
  EXPECT_THAT(refusal(), HasSubstr("set/b/1.png: is neither a PNG nor a JPEG"));
  folder_.write("set/b/1.png", png);
  EXPECT_THAT(refusal({.target = "class"}), HasSubstr("--target=class: the class of an image is the folder"));
  folder_.write("set/b/more/1.png", png);
  EXPECT_THAT(refusal(), HasSubstr("set/b/more: a folder within that of a class"));
  std::filesystem::remove_all(folder_.path("set/b/more"));
  folder_.write("set/b/2.webp", png);
  EXPECT_THAT(refusal(), HasSubstr("set/b/2.webp: is an image of another kind"));
}

}  // namespace
}  // namespace syncopate::worker
