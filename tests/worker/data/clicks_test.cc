#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "tests/worker/data/recommender_data.h"
#include "worker/data/clicks_reader.h"
#include "worker/data/open_dataset.h"

namespace syncopate::worker {
namespace {

using testing::HasSubstr;

std::string ten_lines() {
  std::string text;
  for (int i = 0; i < 10; ++i) text += click_line(i % 2 == 0 ? "0" : "1", std::to_string(i), fmt::format("{:08x}", i));
  return text;
}

TEST(Clicks, AreReadWithLogsOfNumbersAndHashedCategories) {
  const ScratchFolder folder;
  const Result<DatasetPair> pair = open_clicks(write_text(folder, "train.txt", ten_lines()), 1000);
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  EXPECT_EQ(pair->train->size(), 9);
  EXPECT_EQ(pair->test->size(), 1);
  EXPECT_EQ(pair->train->judgement(), Judgement::kClicks);
  const Sample sample = sample_of(*pair->train, 3);
  EXPECT_EQ(sample.labels[0], 1);
  for (float value : sample.values) EXPECT_FLOAT_EQ(value, std::log(4.0f));
  EXPECT_EQ(sample_of(*pair->test, 0).labels[0], 1);
  for (float value : sample_of(*pair->test, 0).values) EXPECT_FLOAT_EQ(value, std::log(10.0f));
}

TEST(Clicks, HashOneCategoryToOtherRowsInOtherFeatures) {
  const ScratchFolder folder;
  const Result<DatasetPair> pair = open_clicks(write_text(folder, "train.txt", ten_lines()), 1'000'000);
  std::set<int> rows;
  for (std::int64_t i = 0; i < 9; ++i) {
    for (int id : sample_of(*pair->train, i).ids) {
      EXPECT_GE(id, 0);
      EXPECT_LT(id, 1'000'000);
      rows.insert(id);
    }
  }
  EXPECT_GE(rows.size(), 9 * 26 - 2u);  // a collision may be
}

TEST(Clicks, MayMissWhatIsNoLabel) {
  const ScratchFolder folder;
  std::string text = click_line("1", "", "") + click_line("0", "-2", "0");
  for (int i = 0; i < 8; ++i) text += click_line("0", "0", "ffffffff");
  const Result<DatasetPair> pair = open_clicks(write_text(folder, "train.txt", text), 1'000'000);
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  for (std::int64_t i : {0, 1, 2}) {
    for (float value : sample_of(*pair->train, i).values) EXPECT_EQ(value, 0.0f);
  }
  EXPECT_NE(sample_of(*pair->train, 0).ids, sample_of(*pair->train, 1).ids);
}

TEST(Clicks, AreRefusedWithLineAndWhatIsExpected) {
  const auto refusal = [](const std::string& last_line) {
    const ScratchFolder folder;
    const Result<DatasetPair> pair = open_clicks(write_text(folder, "train.txt", ten_lines() + last_line), 1000);
    EXPECT_EQ(pair.status().code(), Code::kDataLoss);
    return pair.status().message();
  };
  EXPECT_THAT(refusal(click_line("2", "1", "a")), HasSubstr("line 11: label '2', expected 0 or 1"));
  EXPECT_THAT(refusal(click_line("1", "1.5", "a")), HasSubstr("number 1 '1.5', expected a whole number or nothing"));
  EXPECT_THAT(refusal(click_line("1", "1", "xyz")), HasSubstr("category 1 'xyz', expected up to 8 hexadecimal digits"));
  EXPECT_THAT(refusal(click_line("1", "1", "123456789")), HasSubstr("category 1 '123456789'"));
  EXPECT_THAT(refusal("1\t2\t3\n"), HasSubstr("line 11: 3 columns, expected 40 between tabs"));
}

TEST(Clicks, WithALineWithoutEndAreRefusedOnceItIsTooLong) {
  const ScratchFolder data;
  const std::string path = write_text(data, "train.txt", click_line("1", "2", "ab"));
  std::filesystem::resize_file(path, std::uintmax_t{1} << 38);  // without blocks on the disk
  EXPECT_EQ(open_clicks(path, 10).status().message(), path + ": line 2: longer than 65536 bytes");
  std::filesystem::resize_file(path, std::uintmax_t{1} << 43);
  EXPECT_THAT(open_clicks(path, 10).status().message(), HasSubstr("bytes, 4398046511104 at most"));
}

TEST(Clicks, OfAnIntruderDoNotSpeakToTheTerminal) {
  const ScratchFolder data;
  const std::string path = write_text(data, "train.txt", click_line("\x1b[2J", "2", "ab"));
  EXPECT_THAT(open_clicks(path, 10).status().message(), HasSubstr("label '\\x1b[2J'"));
}

TEST(Clicks, AreRefusedWhereThereAreTooFew) {
  const ScratchFolder folder;
  const Result<DatasetPair> pair = open_clicks(write_text(folder, "train.txt", click_line("1", "1", "a")), 1000);
  EXPECT_THAT(pair.status().message(), HasSubstr("1 lines, expected 10 or more"));
}

TEST(Clicks, AreOpenedByNameWithTheRowsOfTheTable) {
  const ScratchFolder folder;
  EXPECT_EQ(open_dataset("clicks:5000", folder.path(), 1).status().code(), Code::kNotFound);
  write_text(folder, "criteo/train.txt", ten_lines());
  const Result<DatasetPair> pair = open_dataset("clicks:5000", folder.path(), 1);
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  EXPECT_EQ(pair->train->form().ids[0].range, 5000);
  EXPECT_EQ(*sample_form("clicks:5000", folder.path()), pair->train->form());
  for (const char* wrong : {"clicks:", "clicks:0", "clicks:many", "clicks:5-5"}) {
    EXPECT_EQ(check_dataset_name(wrong).code(), Code::kInvalidArgument) << wrong;
  }
}

}  // namespace
}  // namespace syncopate::worker
