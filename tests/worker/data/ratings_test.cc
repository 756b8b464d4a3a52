#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/worker/data/recommender_data.h"
#include "worker/data/ratings_dataset.h"
#include "worker/data/ratings_reader.h"
#include "worker/data/recommender_sets.h"

namespace syncopate::worker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kHeader = "userId,movieId,rating,timestamp\n";

std::string refusal(const std::string& name, const std::string& text) {
  const ScratchFolder folder;
  const Result<RatingTable> table = read_ratings(write_text(folder, name, text));
  EXPECT_EQ(table.status().code(), Code::kDataLoss);
  return table.status().message();
}

TEST(RatingsReader, ReadsAllFormatsAlike) {
  const ScratchFolder folder;
  const std::vector<std::string> paths = {
      write_text(folder, "ratings.csv", std::string(kHeader) + "7,300,4.5,1000\n7,20,1,1001\r\n3,300,0.5,999"),
      write_text(folder, "u.data", "7\t300\t4\t1000\n7\t20\t1\t1001\n3\t300\t1\t999\n"),
      write_text(folder, "ratings.dat", "7::300::4::1000\n7::20::1::1001\n3::300::1::999\n")};
  for (const std::string& path : paths) {
    const Result<RatingTable> table = read_ratings(path);
    ASSERT_TRUE(table.ok()) << table.status().message();
    EXPECT_EQ(table->users, 2);
    EXPECT_EQ(table->items, 2);
    std::vector<std::vector<std::int64_t>> rows;
    for (const Rating& rating : table->ratings) rows.push_back({rating.user, rating.item, rating.time});
    EXPECT_THAT(rows, ElementsAre(ElementsAre(1, 1, 1000), ElementsAre(1, 0, 1001), ElementsAre(0, 1, 999))) << path;
  }
}

TEST(RatingsReader, LeavesOutAMarkQuotesAndEmptyLastLines) {
  const ScratchFolder folder;
  const std::string lines = "\"7\",\"300\",\"4.5\",\"1000\"\r\n3,\"300\",0.5,999\r\n\r\n\n";
  for (const std::string header :
       {"userId,movieId,rating,timestamp\n", "\"userId\",\"movieId\",\"rating\",\"timestamp\"\r\n"}) {
    const Result<RatingTable> table = read_ratings(write_text(folder, "ratings.csv", "\xEF\xBB\xBF" + header + lines));
    ASSERT_TRUE(table.ok()) << table.status().message();
    EXPECT_EQ(table->users, 2);
    EXPECT_EQ(table->ratings.size(), 2u);
  }
}

TEST(RatingsReader, SaysWhichLineIsWrongAndWhatIsExpected) {
  EXPECT_THAT(refusal("ratings.csv", "user,item\n1,2\n"),
              HasSubstr("line 1: header 'user,item', expected 'userId,movieId,rating,timestamp'"));
  EXPECT_THAT(refusal("ratings.csv", std::string(kHeader) + "1,2,3\n"), HasSubstr("line 2: 3 columns, expected 4"));
  EXPECT_THAT(refusal("u.data", "1\t2\t3\t4\t5\n"), HasSubstr("line 1: 5 columns, expected 4"));
  EXPECT_THAT(refusal("u.data", "1\t2\t3\t4\nx\t2\t3\t4\n"), HasSubstr("line 2: userId 'x', expected a whole number"));
  EXPECT_THAT(refusal("u.data", "1\t-2\t3\t4\n"), HasSubstr("movieId '-2', expected a whole number of 0 or more"));
  EXPECT_THAT(refusal("u.data", "1\t2\tgood\t4\n"), HasSubstr("rating 'good', expected a number"));
  EXPECT_THAT(refusal("u.data", "1\t2\t3\tnow\n"), HasSubstr("timestamp 'now', expected a whole number"));
  EXPECT_THAT(refusal("u.data", "1\t2\t3\t4\n\n5\t6\t7\t8\n"), HasSubstr("line 2: 1 columns, expected 4"));
  EXPECT_THAT(refusal("u.data", "1\t2\t3\t4\n5\t2\t3\t4\n1\t2\t5\t6\n"),
              HasSubstr("line 3: user 1 rates item 2 again after line 1"));
  EXPECT_THAT(refusal("ratings.csv", kHeader), HasSubstr("holds no ratings"));
}

TEST(FindRatings, LooksInTheFolderAndInMovieLensFolders) {
  const ScratchFolder folder;
  EXPECT_EQ(find_ratings(folder.path()).status().code(), Code::kNotFound);
  EXPECT_THAT(find_ratings(folder.path()).status().message(), HasSubstr(folder.path() + "/ml-*"));
  const std::string path = write_text(folder, "ml-100k/u.data", "");
  EXPECT_EQ(*find_ratings(folder.path()), path);
  EXPECT_EQ(*find_ratings(folder.path() + "/ml-100k"), path);
  write_text(folder, "ml-1m/ratings.dat", "");
  EXPECT_EQ(find_ratings(folder.path()).status().code(), Code::kInvalidArgument);
  EXPECT_THAT(find_ratings(folder.path()).status().message(), HasSubstr("expected one; name its folder in --data-dir"));
}

// 20 users and 200 items; user u has rated items u, u + 20, ... at falling times: 3 + u % 3 of them.
RatingTable small_table() {
  RatingTable table{.ratings = {}, .users = 20, .items = 200};
  for (int user = 0; user < table.users; ++user) {
    for (int i = 0; i < 3 + user % 3; ++i) table.ratings.push_back({user, user + 20 * i, 1000 - i});
  }
  return table;
}

std::set<int> rated_by(const RatingTable& table, int user) {
  std::set<int> items;
  for (const Rating& rating : table.ratings) {
    if (rating.user == user) items.insert(rating.item);
  }
  return items;
}

TEST(Ratings, LeaveEachUsersLatestOutOfTheTraining) {
  const Result<DatasetPair> pair = make_ratings(small_table(), 5);
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  std::multiset<std::pair<int, int>> positives;
  for (std::int64_t i = 0; i < pair->train->size(); ++i) {
    const Sample sample = sample_of(*pair->train, i);
    if (sample.labels[0] == 1) positives.emplace(sample.ids[0], sample.ids[1]);
  }
  std::multiset<std::pair<int, int>> expected;
  for (const Rating& rating : small_table().ratings) {
    if (rating.item != rating.user) expected.emplace(rating.user, rating.item);  // that with the latest time
  }
  EXPECT_EQ(positives, expected);
}

TEST(Ratings, HaveFourNegativesForEachPositiveThatTheUserHasNotRatedInTraining) {
  const RatingTable table = small_table();
  const Result<DatasetPair> pair = make_ratings(table, 5);
  ASSERT_EQ(pair->train->size() % 5, 0);
  for (std::int64_t i = 0; i < pair->train->size(); ++i) {
    const Sample sample = sample_of(*pair->train, i);
    ASSERT_EQ(sample.labels[0], i % 5 == 0 ? 1 : 0);
    if (i % 5 == 0) continue;
    std::set<int> rated = rated_by(table, sample.ids[0]);
    rated.erase(sample.ids[0]);  // left out for the test: a negative like any other, or it would be given away
    EXPECT_FALSE(rated.contains(sample.ids[1]));
    EXPECT_EQ(sample.ids[0], sample_of(*pair->train, i / 5 * 5).ids[0]);
  }
}

TEST(Ratings, DrawNegativesAnewInEachEpochAndAlikeForOneSeed) {
  const Result<DatasetPair> pair = make_ratings(small_table(), 5), again = make_ratings(small_table(), 5),
                            other = make_ratings(small_table(), 6);
  int moved = 0, differs = 0;
  for (std::int64_t i = 0; i < pair->train->size(); ++i) {
    EXPECT_EQ(sample_of(*pair->train, i, 3), sample_of(*again->train, i, 3));
    moved += sample_of(*pair->train, i, 0) != sample_of(*pair->train, i, 1);
    differs += sample_of(*pair->train, i) != sample_of(*other->train, i);
  }
  EXPECT_GT(moved, pair->train->size() / 2);
  EXPECT_GT(differs, pair->train->size() / 2);
}

TEST(Ratings, TestEachUserOnThePositiveAnd99ItemsThatAreNotRated) {
  const RatingTable table = small_table();
  const Result<DatasetPair> pair = make_ratings(table, 5);
  ASSERT_EQ(pair->test->size(), 20 * kRankedItems);
  EXPECT_EQ(pair->test->judgement(), Judgement::kRanking);
  for (int user = 0; user < table.users; ++user) {
    std::set<int> items;
    for (int i = 0; i < kRankedItems; ++i) {
      const Sample sample = sample_of(*pair->test, user * kRankedItems + i);
      EXPECT_EQ(sample.ids[0], user);
      EXPECT_EQ(sample.labels[0], i == 0 ? 1 : 0);
      EXPECT_EQ(i == 0, rated_by(table, user).contains(sample.ids[1]));
      items.insert(sample.ids[1]);
    }
    EXPECT_EQ(items.size(), static_cast<std::size_t>(kRankedItems));
    EXPECT_TRUE(items.contains(user));
  }
}

TEST(Ratings, OfOneUserAloneStayInTraining) {
  RatingTable table = small_table();
  table.users = 21;
  table.ratings.push_back({20, 7, 1});
  const Result<DatasetPair> pair = make_ratings(table, 5);
  EXPECT_EQ(pair->test->size(), 20 * kRankedItems);
  EXPECT_EQ(pair->train->size(), static_cast<std::int64_t>(5 * (table.ratings.size() - 20)));
}

// To draw until one of two items comes up among a million would take a second for each sample.
TEST(Ratings, OfWhoHasRatedNearlyAllAreDrawnInTime) {
  constexpr int kItems = 300'000;
  RatingTable table{.ratings = {}, .users = 2, .items = kItems};
  for (int item = 0; item < kItems; ++item) {
    if (item % 100'000 != 99'999) table.ratings.push_back({0, item, item});
  }
  for (const int item : {5, 99'999, 199'999, 299'999}) table.ratings.push_back({1, item, item});
  const Result<DatasetPair> pair = make_ratings(table, 1);
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  for (int index = 1; index < 2000; ++index) {
    const Sample sample = sample_of(*pair->train, index);
    if (sample.ids[0] == 0 && sample.labels[0] == 0) EXPECT_EQ(sample.ids[1] % 100'000, 99'999);
  }
}

TEST(Ratings, AreRefusedWhereNobodyCanBeTested) {
  const RatingTable table{.ratings = {{0, 0, 1}, {0, 1, 2}}, .users = 1, .items = 90};
  const Result<DatasetPair> pair = make_ratings(table, 5);
  EXPECT_EQ(pair.status().code(), Code::kDataLoss);
  EXPECT_THAT(pair.status().message(), HasSubstr("99 items or more that they have not rated"));
}

TEST(Ratings, AreOpenedByName) {
  const ScratchFolder folder;
  std::string text;
  for (const Rating& rating : small_table().ratings) {
    text += fmt::format("{}\t{}\t5\t{}\n", rating.user + 1, rating.item + 1, rating.time);
  }
  for (int item = 100; item < 200; ++item) text += fmt::format("21\t{}\t1\t1\n", item + 1);
  write_text(folder, "ml-100k/u.data", text);
  const Result<DatasetPair> pair = open_dataset("ratings", folder.path(), 1);
  ASSERT_TRUE(pair.ok()) << pair.status().message();
  EXPECT_EQ(pair->train->form(), pair->test->form());
  EXPECT_EQ(*sample_form("ratings", folder.path()), pair->train->form());
  EXPECT_EQ(pair->train->form().ids[0].range, 21);
}

}  // namespace
}  // namespace syncopate::worker
