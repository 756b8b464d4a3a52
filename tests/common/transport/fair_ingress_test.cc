#include "common/transport/fair_ingress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace syncopate {
namespace {

using std::chrono::microseconds;
using testing::ElementsAre;
using testing::IsEmpty;

class FairIngressTest : public testing::Test {
 protected:
  static TimePoint at(int us) { return TimePoint{} + microseconds(us); }
  static LinkConnection from(int peer) { return {0, peer}; }
  void add(int peer, int begin, int end, int length) {
    link_.add(from(peer), {at(begin), at(end)}, microseconds(length));
  }
  void add(int peer, int begin, int end) { add(peer, begin, end, end - begin); }
  void expect_next(int peer, int us) {
    EXPECT_EQ(link_.next(0), at(us));
    EXPECT_THAT(link_.take(at(us) - Duration(1)), IsEmpty());
    EXPECT_THAT(link_.take(at(us)), ElementsAre(from(peer)));
  }

  FairIngress link_;
};

TEST_F(FairIngressTest, LetsPassWhatComesAlone) {
  EXPECT_EQ(link_.next(0), TimePoint::max());
  add(1, 100, 200);
  add(1, 200, 250);
  add(1, 300, 500, 100);  // slower than the link
  expect_next(1, 200);
  expect_next(1, 250);
  expect_next(1, 500);
  EXPECT_EQ(link_.next(0), TimePoint::max());
}

TEST_F(FairIngressTest, GivesConnectionsEqualShares) {
  add(1, 0, 200);
  add(2, 100, 150);
  expect_next(2, 200);  // half of the link from 100 on
  expect_next(1, 250);
}

TEST_F(FairIngressTest, GivesOthersWhatAConnectionLeavesOfItsShare) {
  add(1, 0, 400, 100);  // a quarter of the link
  add(2, 0, 270);       // three quarters
  expect_next(2, 360);
  expect_next(1, 400);
}

TEST_F(FairIngressTest, PassesWhatWaitsWhenLessComes) {
  add(1, 0, 100);
  add(2, 0, 90);
  add(2, 100, 300, 50);
  expect_next(2, 180);
  expect_next(1, 200);  // the second message has had a quarter of the link since
  expect_next(2, 300);
}

TEST_F(FairIngressTest, LetsTheRestComeAsItsSenderRevisesIt) {
  add(1, 0, 100);
  link_.revise(from(1), std::vector<LinkRemainder>{{at(40), microseconds(60)}, {at(160), Duration(0)}});
  expect_next(1, 160);
}

TEST_F(FairIngressTest, LetsEachMessageComeAsARevisionSays) {
  add(1, 0, 100);
  add(1, 100, 150);
  link_.revise(from(1), std::vector<LinkRemainder>{
                            {at(60), microseconds(90)}, {at(120), microseconds(60)}, {at(180), Duration(0)}});
  expect_next(1, 130);
  expect_next(1, 180);
}

TEST_F(FairIngressTest, TakesBackNothingThatHasPassedBeforeARevision) {
  add(1, 0, 50);
  add(1, 50, 100);
  EXPECT_THAT(link_.take(at(60)), ElementsAre(from(1)));
  link_.revise(from(1), std::vector<LinkRemainder>{{at(20), microseconds(80)}, {at(180), Duration(0)}});
  expect_next(1, 180);
}

TEST_F(FairIngressTest, LosesNoMessageToARevisionThatMeansOthers) {
  add(1, 0, 100);
  link_.revise(from(1), std::vector<LinkRemainder>{{at(10), microseconds(500)}, {at(1000), Duration(0)}});
  expect_next(1, 1000);
  add(1, 1000, 1100);
  link_.revise(from(1), std::vector<LinkRemainder>{{at(1050), microseconds(1)}, {at(1060), Duration(0)}});
  expect_next(1, 1100);
  link_.revise(from(1), std::vector<LinkRemainder>{{at(1150), microseconds(1)}, {at(1160), Duration(0)}});
  EXPECT_EQ(link_.next(0), TimePoint::max());
}

TEST_F(FairIngressTest, GivesTimeThatWasFreeToWhoIsToldOfLate) {
  add(1, 100, 110);
  expect_next(1, 110);
  add(2, 0, 20);
  expect_next(2, 110);  // it has long passed
  add(2, 10, 95);       // from 20 to 100, and at 110 the rest
  expect_next(2, 115);
}

TEST_F(FairIngressTest, ForgetsWhatWasFreeLongAgo) {
  const int count = static_cast<int>(FairIngress::kMostRemembered) + 1;
  for (int i = 0; i < count; ++i) {
    add(1, 100 * i, 100 * i + 10);
    expect_next(1, 100 * i + 10);
  }
  const int now = 100 * (count - 1) + 10;
  add(2, -100, -90);  // before the first
  expect_next(2, now);
  add(2, 10, 10 + 100, 100);
  EXPECT_GE(link_.next(0), at(now));
}

TEST_F(FairIngressTest, HoldsItsEndpointsApart) {
  constexpr LinkConnection kOther{1, 1};
  add(1, 0, 100);
  link_.add(kOther, {at(0), at(50)}, microseconds(50));
  EXPECT_EQ(link_.next(1), at(100));
  EXPECT_EQ(link_.next(0), at(150));
  link_.leave(1);
  EXPECT_EQ(link_.next(0), at(100));
}

// The order in which messages of several connections are told of does not matter, as long as none has been taken.
TEST_F(FairIngressTest, SaysTheSameInWhateverOrderItIsTold) {
  struct Told {
    int peer, begin, end, length;
  };
  std::vector<Told> told = {{1, 0, 200, 200}, {2, 5, 105, 50}, {3, 40, 43, 3}, {4, 90, 400, 100}};
  const auto by_peer = [](const Told& one, const Told& other) { return one.peer < other.peer; };
  std::vector<std::vector<LinkConnection>> orders;
  std::vector<TimePoint> ends;
  do {
    FairIngress link;
    for (const Told& one : told) {
      link.add(from(one.peer), {at(one.begin), at(one.end)}, microseconds(one.length));
    }
    std::size_t i = 0;
    orders.emplace_back();
    for (TimePoint next = link.next(0); next != TimePoint::max(); next = link.next(0), ++i) {
      if (orders.size() == 1) ends.push_back(next);
      EXPECT_EQ(next, ends.at(i));
      for (const LinkConnection& taken : link.take(next)) orders.back().push_back(taken);
    }
    EXPECT_EQ(orders.back(), orders.front());
  } while (std::ranges::next_permutation(told, by_peer).found);
  EXPECT_EQ(orders.size(), 24U);
}

// Whatever comes: each connection's messages pass in order, none before its last byte has come, and all have passed
// exactly when a link has carried them that is never idle while something waits: at the latest moment plus all that
// comes after it.
TEST_F(FairIngressTest, IsNeverFasterThanALinkAndNeverIdle) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    FairIngress link;
    TimePoint now = at(1000);
    struct Message {
      LinkPassage passage;
      Duration length;
      Duration after(TimePoint time) const {
        const Duration ahead = std::clamp(passage.end - time, Duration(0), passage.end - passage.begin);
        return length * ahead.count() / (passage.end - passage.begin).count();
      }
    };
    std::vector<std::vector<Message>> sent(4);
    std::vector<std::size_t> passed(4);
    const auto take = [&](TimePoint until) {
      while (link.next(0) <= until) {
        const TimePoint next = link.next(0);
        for (const LinkConnection& taken : link.take(next)) {
          const auto peer = static_cast<std::size_t>(taken.peer);
          EXPECT_GE(next, sent[peer].at(passed[peer]++).passage.end);
          now = std::max(now, next);
        }
      }
    };
    for (int i = 0; i < 60; ++i) {
      now += microseconds(random() % 300);
      take(now);
      const auto peer = random() % 4;
      const auto length = microseconds(1 + random() % 300);
      const TimePoint begin = sent[peer].empty() ? now : std::max(now, sent[peer].back().passage.end);
      sent[peer].push_back({{begin, begin + length * (1 + random() % 3)}, length});
      link.add(from(static_cast<int>(peer)), sent[peer].back().passage, length);
    }
    take(TimePoint::max() - Duration(1));
    TimePoint expected;
    for (const auto& all : sent) {
      for (const Message& one : all) {
        for (const TimePoint time : {one.passage.begin, one.passage.end}) {
          Duration after{};
          for (const auto& others : sent) {
            for (const Message& other : others) after += other.after(time);
          }
          expected = std::max(expected, time + after);
        }
      }
    }
    EXPECT_EQ(passed[0] + passed[1] + passed[2] + passed[3], 60U);
    EXPECT_LE(std::chrono::abs(now - expected), Duration(300)) << "an integer division for each message";
  }
}

}  // namespace
}  // namespace syncopate
