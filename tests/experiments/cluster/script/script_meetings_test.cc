#include "experiments/cluster/script/script_meetings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace syncopate::experiments {
namespace {

using Kind = ScriptMeetings::Kind;
using Part = ScriptMeetings::Part;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<float> floats_in(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<std::byte> text_bytes(const std::string& text) {
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

TEST(MeetingsOfAScript, GiveAllTheSumOnceAllHaveCome) {
  ScriptMeetings meetings(3);
  for (const int rank : {2, 0}) {
    ASSERT_TRUE(
        meetings.come(rank, {.kind = Kind::kSum, .scale = 0.5, .bytes = bytes_of({1.0F * static_cast<float>(rank), 4})})
            .ok());
    EXPECT_FALSE(meetings.take(rank));
  }
  EXPECT_THAT(meetings.absent(2), ElementsAre(1));
  ASSERT_TRUE(meetings.come(1, {.kind = Kind::kSum, .scale = 0.5, .bytes = bytes_of({1, 4})}).ok());
  for (const int rank : {0, 1, 2}) EXPECT_THAT(floats_in(meetings.take(rank)->bytes), ElementsAre(1.5f, 6));
}

TEST(MeetingsOfAScript, GiveTheRootsBytesAndEverybodysTexts) {
  ScriptMeetings meetings(2);
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(
        meetings.come(rank, {.kind = Kind::kBroadcast, .root = 1, .bytes = bytes_of({1.0F * static_cast<float>(rank)})})
            .ok());
  }
  for (const int rank : {0, 1}) EXPECT_THAT(floats_in(meetings.take(rank)->bytes), ElementsAre(1));
  ASSERT_TRUE(meetings.come(0, {.kind = Kind::kGather, .bytes = text_bytes("short")}).ok());
  ASSERT_TRUE(meetings.come(1, {.kind = Kind::kGather, .bytes = text_bytes("a longer text")}).ok());
  for (const int rank : {0, 1}) EXPECT_THAT(meetings.take(rank)->texts, ElementsAre("short", "a longer text"));
}

TEST(MeetingsOfAScript, LetOneRankBeOneAheadOfAnother) {
  ScriptMeetings meetings(2);
  for (const int rank : {0, 1}) ASSERT_TRUE(meetings.come(rank, {.kind = Kind::kBarrier}).ok());
  ASSERT_TRUE(meetings.take(0));
  ASSERT_TRUE(meetings.come(0, {.kind = Kind::kSum, .bytes = bytes_of({1})}).ok());
  EXPECT_FALSE(meetings.take(0));
  ASSERT_TRUE(meetings.take(1)) << "of the first";
  ASSERT_TRUE(meetings.come(1, {.kind = Kind::kSum, .bytes = bytes_of({2})}).ok());
  for (const int rank : {1, 0}) EXPECT_THAT(floats_in(meetings.take(rank)->bytes), ElementsAre(3));
}

TEST(MeetingsOfAScript, RefuseRanksThatDoNotDoTheSame) {
  const Part one{.kind = Kind::kSum, .bytes = bytes_of({1})};
  for (const Part& other : {Part{.kind = Kind::kBarrier}, Part{.kind = Kind::kSum, .bytes = bytes_of({1, 2})},
                            Part{.kind = Kind::kSum, .scale = 2, .bytes = bytes_of({1})},
                            Part{.kind = Kind::kSum, .root = 2, .bytes = bytes_of({1})}}) {
    ScriptMeetings meetings(2);
    ASSERT_TRUE(meetings.come(0, one).ok());
    EXPECT_EQ(meetings.come(1, other).code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace syncopate::experiments
