#include "worker/data/open_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <thread>

#include "tests/worker/data/scratch_folder.h"
#include "worker/data/digits.h"
#include "worker/data/digits_cache.h"
#include "worker/data/image_dataset.h"
#include "worker/data/text_form.h"

namespace syncopate::worker {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr DigitsCounts kFew{.train = 30, .test = 20};

std::vector<std::filesystem::path> files_in(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  return paths;
}

int label_of(const Dataset& data, std::int64_t index) {
  std::vector<float> values(static_cast<std::size_t>(data.form().values()));
  int label = -1;
  data.read(index, 0, {values, {}, {&label, 1}});
  return label;
}

TEST(DigitsCache, MakesTheSetOnceAndThenFindsIt) {
  const ScratchFolder data;
  const Result<std::string> folder = ensure_digits(data.path("new"), 7, kFew);
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  EXPECT_EQ(*folder, data.path("new/digits-30-20-seed7-v1"));
  const auto files = files_in(*folder);
  EXPECT_EQ(files.size(), 4u);
  // A second call that wrote would put the right content back.
  for (const auto& file : files) data.write(std::filesystem::relative(file, data.path()).string(), {1, 2, 3});
  ASSERT_TRUE(ensure_digits(data.path("new"), 7, kFew).ok());
  for (const auto& file : files) EXPECT_EQ(ScratchFolder::read(file), (Bytes{1, 2, 3}));
}

TEST(DigitsCache, CompletesASetThatWasLeftUnfinished) {
  const ScratchFolder data;
  const Result<std::string> folder = ensure_digits(data.path(), 7, kFew);
  ASSERT_TRUE(folder.ok());
  std::filesystem::remove(*folder + "/t10k-labels-idx1-ubyte");
  ASSERT_TRUE(ensure_digits(data.path(), 7, kFew).ok());
  EXPECT_EQ(files_in(*folder).size(), 4u);
}

TEST(DigitsCache, MayBeFilledByManyAtOnce) {
  const ScratchFolder data;
  {
    std::array<std::jthread, 4> makers;
    for (std::jthread& maker : makers) {
      maker = std::jthread([&] { EXPECT_TRUE(open_dataset("digits:200-100", data.path(), 7).ok()); });
    }
  }
  EXPECT_EQ(files_in(digits_folder(data.path(), 7, {.train = 200, .test = 100})).size(), 4u);
}

TEST(DigitsCache, SaysWhyItCannotBeWritten) {
  const ScratchFolder data;
  const std::string file = data.write("file", {1});
  const Status status = ensure_digits(file, 7, kFew).status();
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_THAT(status.message(), AllOf(HasSubstr(file), HasSubstr("Not a directory")));
}

TEST(OpenDataset, GivesDigitsThatAreThoseOfTheGenerator) {
  const ScratchFolder data;
  const Result<DatasetPair> pair = open_dataset("digits:30-20", data.path(), 7);
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  EXPECT_EQ(pair->train->size(), 30);
  EXPECT_EQ(pair->test->size(), 20);
  EXPECT_EQ(pair->train->form(), form_of_images(kDigitShape, 10));
  Bytes drawn(784);
  std::vector<float> expected(784), values(784);
  int label = -1;
  EXPECT_EQ(render_digit(7, 29, drawn), (pair->train->read(29, 0, {values, {}, {&label, 1}}), label));
  normalize(drawn, expected);
  EXPECT_EQ(values, expected);
  EXPECT_EQ(render_digit(7, kFirstTestDigit, drawn), (pair->test->read(0, 0, {values, {}, {&label, 1}}), label));
  normalize(drawn, expected);
  EXPECT_EQ(values, expected);
}

TEST(OpenDataset, ScalesPixelsOfInkToTheUnitIntervalIfAsked) {
  const ScratchFolder data;
  const Result<DatasetPair> pair = open_dataset("digits:30-20:unit", data.path(), 7);
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  Bytes drawn(784);
  std::vector<float> expected(784), values(784);
  int label = -1;
  EXPECT_EQ(render_digit(7, kFirstTestDigit, drawn), (pair->test->read(0, 0, {values, {}, {&label, 1}}), label));
  normalize(drawn, expected, PixelScale::kUnit);
  EXPECT_EQ(values, expected);
  EXPECT_EQ(sample_form("digits:30-20:unit", data.path())->values(), 784);
  for (const char* name : {"mnist:unit", "fashion-mnist:unit", "digits:unit"}) {
    EXPECT_TRUE(check_dataset_name(name).ok()) << name;
  }
  for (const char* name : {"cifar10:unit", "text:unit", "grammar:unit", ":unit"}) {
    EXPECT_FALSE(check_dataset_name(name).ok()) << name;
  }
}

TEST(OpenDataset, SaysHowToMendDamagedDigits) {
  const ScratchFolder data;
  ASSERT_TRUE(open_dataset("digits:30-20", data.path(), 7).ok());
  std::filesystem::resize_file(data.path("digits-30-20-seed7-v1/train-images-idx3-ubyte"), 1000);
  const Status status = open_dataset("digits:30-20", data.path(), 7).status();
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("train-images-idx3-ubyte: truncated"), HasSubstr("made anew")));
}

TEST(OpenDataset, FindsMnistInEachOfItsFoldersPlainOrGzip) {
  for (const std::string prefix : {"mnist/", "MNIST/raw/", ""}) {
    const ScratchFolder data;
    data.write(prefix + "train-images-idx3-ubyte", three_images());
    data.write(prefix + "train-labels-idx1-ubyte", three_labels());
    data.write_gz(prefix + "t10k-images-idx3-ubyte.gz", three_images());
    data.write_gz(prefix + "t10k-labels-idx1-ubyte.gz", three_labels());
    const Result<DatasetPair> pair = open_dataset("mnist", data.path(), 1);
    ASSERT_TRUE(pair.ok()) << pair.status().message();
    EXPECT_EQ(label_of(*pair->test, 0), 7);
  }
}

TEST(OpenDataset, SaysWhereItLookedAndForWhat) {
  const ScratchFolder data;
  const Status status = open_dataset("fashion-mnist", data.path(), 1).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("train-images-idx3-ubyte"), HasSubstr(data.path("fashion-mnist, ")),
                                      HasSubstr(data.path("FashionMNIST/raw, "))));
}

TEST(OpenDataset, NamesTheFilesThatAreMissing) {
  const ScratchFolder data;
  data.write("train-images-idx3-ubyte", three_images());
  const Status status = open_dataset("mnist", data.path(), 1).status();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("has " + data.path("train-images-idx3-ubyte") +
                                          " but not train-labels-idx1-ubyte, t10k-images-idx3-ubyte"));
}

TEST(OpenDataset, RefusesTestImagesOfAnotherShape) {
  const ScratchFolder data;
  data.write("train-images-idx3-ubyte", three_images());
  data.write("train-labels-idx1-ubyte", three_labels());
  data.write("t10k-images-idx3-ubyte", idx({0x803, 3, 2, 2}, Bytes(12)));
  data.write("t10k-labels-idx1-ubyte", three_labels());
  const Status status = open_dataset("mnist", data.path(), 1).status();
  EXPECT_EQ(status.code(), Code::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("training images are 2x3, test images 2x2"));
}

TEST(OpenDataset, OpensCifarOfItsTrueSize) {
  const ScratchFolder data;
  for (const std::string name : {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5"}) {
    data.write("cifar-10-batches-bin/" + name + ".bin", {3});
    std::filesystem::resize_file(data.path("cifar-10-batches-bin/" + name + ".bin"), 30'730'000);
  }
  EXPECT_THAT(open_dataset("cifar10", data.path(), 1).status().message(), HasSubstr("but not test_batch.bin"));
  data.write("cifar-10-batches-bin/test_batch.bin", {4});
  std::filesystem::resize_file(data.path("cifar-10-batches-bin/test_batch.bin"), 30'730'000);
  const Result<DatasetPair> pair = open_dataset("cifar10", data.path(), 1);
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  EXPECT_EQ(pair->train->size(), 50'000);
  EXPECT_EQ(pair->test->size(), 10'000);
  EXPECT_EQ(label_of(*pair->train, 40'000), 3);
  EXPECT_EQ(label_of(*pair->test, 0), 4);
}

TEST(OpenDataset, ShowsCropsOfCifarsTrainingImagesAndTestImagesAsTheyAre) {
  const ScratchFolder data;
  for (const std::string name :
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"}) {
    data.write("cifar10/" + name + ".bin", {0});
    std::filesystem::resize_file(data.path("cifar10/" + name + ".bin"), 30'730'000);
  }
  // All pixels are black, so that only what is put around an image is 0.
  const auto epochs_with_a_crop = [](const Dataset& set) {
    std::vector<float> values(3072);
    int label = 0, crops = 0;
    for (std::int64_t epoch = 0; epoch < 50; ++epoch) {
      set.read(0, epoch, {.values = values, .labels = {&label, 1}});
      crops += std::ranges::count(values, 0.0f) > 0 ? 1 : 0;
    }
    return crops;
  };
  const Result<DatasetPair> pair = open_dataset("cifar10", data.path(), 1);
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  EXPECT_GT(epochs_with_a_crop(*pair->train), 40);
  EXPECT_EQ(epochs_with_a_crop(*pair->test), 0);
  const Result<DatasetPair> plain = open_dataset("cifar10:plain", data.path(), 1);
  ASSERT_TRUE(plain.ok()) << plain.status().message();
  EXPECT_EQ(epochs_with_a_crop(*plain->train), 0);
}

TEST(SampleForm, IsThatOfTheOpenSetAndReadsNoMoreThanAHeader) {
  const ScratchFolder data;
  EXPECT_EQ(sample_form("digits:30-20", data.path())->image, kDigitShape);
  EXPECT_EQ(sample_form("cifar10", data.path())->image, (ImageShape{32, 32, 3}));
  EXPECT_TRUE(files_in(data.path()).empty()) << "something was generated";
  const Bytes header = idx({0x803, 60000, 2, 3}, {});  // and not one image
  for (const char* name : {"train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    data.write(name, {1});
  }
  data.write("train-images-idx3-ubyte", header);
  EXPECT_EQ(sample_form("mnist", data.path())->image, (ImageShape{2, 3, 1}));
  std::filesystem::remove(data.path("train-images-idx3-ubyte"));
  data.write_gz("train-images-idx3-ubyte.gz", header);
  EXPECT_EQ(sample_form("fashion-mnist", data.path())->image, (ImageShape{2, 3, 1}));
  EXPECT_EQ(sample_form("fashion-mnist", data.path())->classes, 10);
}

TEST(SampleForm, OfTextsIsKnownWithoutAFile) {
  const ScratchFolder data;
  for (const auto& [name, context, characters] :
       {std::tuple("text", 64, 256), {"text:9", 9, 256}, {"grammar", 64, 8}, {"grammar:30-20-5-9", 5, 9}}) {
    const SampleForm form = *sample_form(name, data.path());
    EXPECT_TRUE(is_text(form));
    EXPECT_EQ(form.labels, context);
    EXPECT_EQ(form.classes, characters);
  }
  const DatasetPair pair = std::move(*open_dataset("grammar:30-20-5-9", data.path(), 1));
  EXPECT_EQ(pair.train->size(), 30);
  EXPECT_EQ(pair.test->size(), 20);
  EXPECT_EQ(pair.train->form(), *sample_form("grammar:30-20-5-9", data.path()));
}

TEST(SampleForm, OfPatternsIsKnownWithoutAFile) {
  const ScratchFolder data;
  EXPECT_EQ(*sample_form("patterns", data.path()), form_of_images({224, 224, 3}, 1000));
  const DatasetPair pair = std::move(*open_dataset("patterns:30-20-8-7", data.path(), 1));
  EXPECT_EQ(pair.train->size(), 30);
  EXPECT_EQ(pair.test->size(), 20);
  EXPECT_EQ(pair.train->form(), form_of_images({8, 8, 3}, 7));
  EXPECT_EQ(pair.test->form(), *sample_form("patterns:30-20-8-7", data.path()));
}

TEST(SampleForm, SaysWhatIsMissingOrWrong) {
  const ScratchFolder data;
  EXPECT_EQ(sample_form("imagenet", data.path()).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(sample_form("mnist", data.path()).status().code(), Code::kNotFound);
  for (const char* name : {"train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    data.write(name, {1});
  }
  data.write("train-images-idx3-ubyte", {0, 0, 8});
  EXPECT_THAT(sample_form("mnist", data.path()).status().message(),
              HasSubstr("train-images-idx3-ubyte: truncated: 3 bytes, the header alone has 16"));
  data.write("train-images-idx3-ubyte", three_labels());
  EXPECT_EQ(sample_form("mnist", data.path()).status().code(), Code::kDataLoss);
}

TEST(OpenDataset, DoesNotWaitForAPipeOrReadADevice) {
  const ScratchFolder data;
  for (const char* name : {"train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    data.write(name, {1});
  }
  const std::string images = data.path("train-images-idx3-ubyte");
  ASSERT_EQ(mkfifo(images.c_str(), 0600), 0);
  EXPECT_THAT(sample_form("mnist", data.path()).status().message(), HasSubstr("but a pipe"));
  EXPECT_THAT(open_dataset("mnist", data.path(), 1).status().message(), HasSubstr("but a pipe"));
  std::filesystem::remove(images);
  std::filesystem::create_symlink("/dev/zero", images);
  EXPECT_THAT(open_dataset("mnist", data.path(), 1).status().message(), HasSubstr("but a device"));
}

TEST(OpenDataset, ShowsNoNameThatATerminalWouldObey) {
  const ScratchFolder data;
  data.write("\x1b[2J.txt", {});
  EXPECT_THAT(open_dataset("text", data.path(), 1).status().message(), HasSubstr("/\\x1b[2J.txt: is empty"));
}

TEST(DatasetName, IsCheckedWithoutTouchingFiles) {
  for (const char* name :
       {"digits", "digits:1-1", "digits:60000-10000", "mnist", "fashion-mnist", "cifar10", "cifar10:plain", "text",
        "text:1", "grammar", "grammar:5-4-4096-2", "patterns", "patterns:5-4-32-10"}) {
    EXPECT_TRUE(check_dataset_name(name).ok()) << name;
  }
  for (const char* name : {"",
                           "digit",
                           "MNIST",
                           "digits:",
                           "digits:5",
                           "digits:5-",
                           "digits:-5",
                           "digits:0-5",
                           "digits:5-5-5",
                           "digits:5x-5",
                           "digits:99999999999999999999-5",
                           "text:",
                           "text:0",
                           "text:4097",
                           "text:8-8",
                           "grammar:",
                           "grammar:5-4",
                           "grammar:5-4-3",
                           "grammar:5-4-4097-2",
                           "grammar:5-4-3-1",
                           "grammar:5-4-3-2-1",
                           "grammar:0-4-3-2",
                           "patterns:5-4-32",
                           "patterns:5-4-4097-10",
                           "patterns:5-4-32-1"}) {
    EXPECT_EQ(check_dataset_name(name).code(), Code::kInvalidArgument) << name;
  }
  EXPECT_THAT(check_dataset_name("imagenet").message(), HasSubstr("must be one of digits, digits:TRAIN-TEST, mnist"));
}

}  // namespace
}  // namespace syncopate::worker
