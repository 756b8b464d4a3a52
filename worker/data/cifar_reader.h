// Opens CIFAR-10's binary version (A. Krizhevsky 2009, "Learning multiple layers of features from tiny images") as an
// ImageDataset of 32x32 colour images in ten classes.
//
// A file is a sequence of records of 3073 bytes: a label, then 1024 bytes each of red, green and blue, row by row.
//
// Samples are read as He et al. 2016 ("Deep residual learning", section 4.2) train and test: in training, an image is
// padded by 4 pixels on each side, and a crop of 32x32, or its mirror image, is drawn from that, anew in each epoch
// (draw_crop); a test image is unchanged. Values are normalised channel by channel, (value / 255 - mean) / deviation,
// by the mean and the standard deviation of the 50,000 training images; the paper subtracts the mean of each pixel
// instead. The padding is the mean: 0.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "common/status.h"
#include "worker/data/image_dataset.h"

namespace syncopate::worker {

// Pixels of padding on each side of an image before it is cropped to its own size.
inline constexpr int kCropPadding = 4;

struct Crop {
  int top = kCropPadding;  // begin of the crop in the padded image: 0 to 2 * kCropPadding; default: no shift
  int left = kCropPadding;
  bool flipped = false;  // left and right exchanged

  bool operator==(const Crop&) const = default;
};

// Returns the crop of image `index` in epoch `epoch`. All positions and both directions are equally likely (He et al.
// 2016, "Deep residual learning for image recognition", section 4.2, after Lee et al. 2015, "Deeply-supervised nets").
// It depends only on its arguments, so that every mode sees the same images.
Crop draw_crop(std::uint64_t seed, std::int64_t epoch, std::int64_t index);

inline constexpr ImageShape kCifarShape{32, 32, 3};
inline constexpr int kCifarClasses = 10;
inline constexpr std::int64_t kCifarRecordsPerFile = 10'000;
// The files of the data set: five for training, one for test.
inline constexpr const char* kCifarTrainFiles[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                                   "data_batch_4.bin", "data_batch_5.bin"};
inline constexpr const char* kCifarTestFile = "test_batch.bin";

// The moments of the training images, in units of 255: red, green, blue.
inline constexpr float kCifarMean[] = {0.49139968f, 0.48215841f, 0.44653091f};
inline constexpr float kCifarDeviation[] = {0.24703223f, 0.24348513f, 0.26158784f};

// Opens the samples of `paths`, one file after another, each mapped. image() returns its result in the scratch buffer,
// in the order of the file; read() crops and flips it as drawn from `crop_seed`, if there is one. kNotFound or
// kDataLoss name the file, what was found and what was expected: a size other than records_per_file records, or a label
// above 9.
Result<std::unique_ptr<ImageDataset>> open_cifar10(std::span<const std::string> paths,
                                                   std::int64_t records_per_file = kCifarRecordsPerFile,
                                                   std::optional<std::uint64_t> crop_seed = std::nullopt);

}  // namespace syncopate::worker
