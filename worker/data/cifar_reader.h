// Opens CIFAR-10's binary version (A. Krizhevsky 2009, "Learning multiple layers of features from tiny images") as an
// ImageDataset of 32x32 colour images in ten classes.
//
// A file is a row of records of 3073 bytes: a label, then 1024 bytes each of red, green and blue, row by row.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "common/status.h"
#include "worker/data/image_dataset.h"

namespace syncopate::worker {

inline constexpr ImageShape kCifarShape{32, 32, 3};
inline constexpr int kCifarClasses = 10;
inline constexpr std::int64_t kCifarRecordsPerFile = 10'000;
// The files of the data set: five of training, one of test.
inline constexpr const char* kCifarTrainFiles[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                                   "data_batch_4.bin", "data_batch_5.bin"};
inline constexpr const char* kCifarTestFile = "test_batch.bin";

// The samples of `paths`, one file after another, each mapped. image() returns its result in the scratch buffer.
// kNotFound or kDataLoss name the file, what was found and what was expected: a size other than records_per_file
// records, a label above 9.
Result<std::unique_ptr<ImageDataset>> open_cifar10(std::span<const std::string> paths,
                                                   std::int64_t records_per_file = kCifarRecordsPerFile);

}  // namespace syncopate::worker
