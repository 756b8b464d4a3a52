#include "common/transport/fair_egress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace syncopate {
namespace {

using std::chrono::microseconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr LinkConnection kA{0, 1}, kB{0, 2}, kC{0, 3};

class FairEgressTest : public testing::Test {
 protected:
  static TimePoint at(int us) { return TimePoint{} + microseconds(us); }
  void expect_passage(int now, LinkConnection connection, int length, int begin, int end) {
    const LinkPassage passage = link_.send(at(now), connection, microseconds(length));
    EXPECT_EQ(passage.begin, at(begin));
    EXPECT_EQ(passage.end, at(end));
  }
  // Microseconds of time and of what is left, in turn.
  std::vector<int> say(LinkConnection connection, std::size_t most = 12) {
    std::vector<int> said;
    for (const LinkRemainder& remainder : link_.say(connection, most)) {
      said.push_back(static_cast<int>((remainder.time - TimePoint{}) / microseconds(1)));
      said.push_back(static_cast<int>(remainder.left / microseconds(1)));
    }
    return said;
  }

  FairEgress link_;
};

TEST_F(FairEgressTest, LetsMessagesOfOneConnectionPassOneAfterAnother) {
  expect_passage(100, kA, 10, 100, 110);
  expect_passage(100, kA, 5, 110, 115);
  expect_passage(112, kA, 5, 115, 120);
  expect_passage(1000, kA, 10, 1000, 1010);
  EXPECT_THAT(link_.outdated(0), IsEmpty());
}

TEST_F(FairEgressTest, GivesConnectionsEqualShares) {
  expect_passage(0, kA, 100, 0, 100);
  expect_passage(40, kB, 30, 40, 100);  // from 40 on each has half
  EXPECT_THAT(link_.outdated(0), ElementsAre(kA));
  EXPECT_THAT(say(kA), ElementsAre(40, 60, 100, 30, 130, 0));
  EXPECT_THAT(link_.outdated(0), IsEmpty());
}

TEST_F(FairEgressTest, ChangesNothingThatEndsBeforeAConnectionWouldHaveEnded) {
  expect_passage(0, kA, 100, 0, 100);
  expect_passage(0, kB, 100, 0, 200);
  say(kA);
  expect_passage(10, kA, 100, 200, 300);
  EXPECT_THAT(link_.outdated(0), IsEmpty()) << "they shared the link until 200 before";
  expect_passage(20, kB, 50, 200, 300);
  EXPECT_THAT(link_.outdated(0), ElementsAre(kA));
  EXPECT_THAT(say(kA), ElementsAre(20, 190, 300, 50, 350, 0));
}

TEST_F(FairEgressTest, SaysHowEveryConnectionGoesOnInAsManyRemaindersAsAreAskedFor) {
  expect_passage(0, kA, 300, 0, 300);
  expect_passage(0, kB, 200, 0, 400);
  expect_passage(0, kC, 100, 0, 300);
  EXPECT_THAT(say(kA), ElementsAre(0, 300, 300, 200, 500, 100, 600, 0));
  EXPECT_THAT(say(kA, 3), ElementsAre(0, 300, 300, 200, 600, 0));
  EXPECT_THAT(say(kA, 2), ElementsAre(0, 300, 600, 0));
  link_.advance(at(450));
  EXPECT_THAT(say(kA), ElementsAre(450, 125, 500, 100, 600, 0));
  link_.advance(at(600));
  EXPECT_THAT(say(kA), IsEmpty());
}

TEST_F(FairEgressTest, KeepsInMindWhatItSaidBeforeAMessageIsSentBehind) {
  expect_passage(0, kA, 100, 0, 100);
  expect_passage(0, kB, 100, 0, 200);
  expect_passage(0, kA, 100, 200, 300);  // it is right of the second message, and wrong of the first
  EXPECT_THAT(link_.outdated(0), ElementsAre(kA));
  say(kA);
  link_.unsay(kA);
  EXPECT_THAT(link_.outdated(0), ElementsAre(kA));
}

TEST_F(FairEgressTest, HoldsItsEndpointsApart) {
  constexpr LinkConnection kOther{1, 1};
  expect_passage(0, kA, 100, 0, 100);
  expect_passage(0, kA, 100, 100, 200);
  expect_passage(0, kOther, 50, 0, 100);
  EXPECT_THAT(link_.outdated(0), ElementsAre(kA));
  EXPECT_THAT(link_.outdated(1), IsEmpty());
  EXPECT_EQ(link_.next_end(0, at(0)), at(150));
  EXPECT_EQ(link_.next_end(0, at(150)), at(250));
  EXPECT_EQ(link_.next_end(0, at(250)), TimePoint::max());
  EXPECT_EQ(link_.next_end(1, at(0)), at(100));
  link_.leave(0);
  EXPECT_EQ(link_.next_end(0, at(0)), TimePoint::max());
  EXPECT_EQ(link_.next_end(1, at(0)), at(50));
}

// Whatever is sent: ends move to later times alone, all of them together take exactly as long as what was sent, and the
// link is idle only when everything has left.
TEST_F(FairEgressTest, IsNeverFasterThanALinkAndNeverIdle) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    FairEgress link;
    TimePoint now = at(1000000), idle_from = now;
    std::map<LinkConnection, TimePoint> said;
    for (int i = 0; i < 50; ++i) {
      now += microseconds(random() % 400);
      const LinkConnection connection{0, static_cast<int>(random() % 5)};
      const auto length = microseconds(1 + random() % 500);
      const LinkPassage passage = link.send(now, connection, length);
      idle_from = std::max(now, idle_from) + length;
      EXPECT_GE(passage.end - passage.begin, length);
      EXPECT_GE(passage.begin, now);
      if (said.contains(connection)) EXPECT_GE(passage.begin + Duration(1), std::min(said[connection], passage.begin));
      said[connection] = passage.end;
      for (const LinkConnection& late : link.outdated(0)) {
        const std::vector<LinkRemainder> remainders = link.say(late, 12);
        EXPECT_GE(remainders.back().time, said[late]);
        said[late] = remainders.back().time;
      }
      TimePoint last;
      for (const auto& [one, end] : said) last = std::max(last, end);
      EXPECT_LE(last, idle_from + Duration(2)) << round << " " << i;
      EXPECT_GE(last + FairEgress::kNoticed + Duration(2), idle_from) << round << " " << i;
    }
  }
}

}  // namespace
}  // namespace syncopate
