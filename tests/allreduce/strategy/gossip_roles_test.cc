#include "allreduce/strategy/gossip_roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace syncopate::allreduce {
namespace {

using Due = GossipLedger::Due;
using testing::HasSubstr;

constexpr std::size_t kElements = 10;
constexpr std::size_t kBytes = kElements * sizeof(float);

GossipHeader offer(std::uint64_t meeting) {
  return {.meeting = meeting, .kind = GossipHeader::kOffer, .elements = kElements};
}
GossipHeader mean(std::uint64_t meeting) {
  return {.meeting = meeting, .kind = GossipHeader::kMean, .elements = kElements};
}

std::string refusal(GossipLedger& ledger, int from, const GossipHeader& header, std::size_t bytes = kBytes) {
  const Result<Due> due = ledger.on_message(from, header, bytes);
  if (due.ok()) return "taken";
  EXPECT_EQ(due.status().code(), Code::kDataLoss);
  return due.status().message();
}

TEST(GossipPartner, IsAPassiveRankOfTheGroupAndNobodyWhereThereIsNone) {
  for (int size = 2; size <= 9; ++size) {
    for (int rank = 0; rank < size; rank += 2) {
      for (std::int64_t meeting = 0; meeting < 100; ++meeting) {
        const int partner = gossip_partner(3, rank, meeting, size);
        ASSERT_TRUE(partner >= 0 && partner < size);
        ASSERT_FALSE(is_active(partner)) << "rank " << rank << " of " << size;
      }
    }
  }
  EXPECT_EQ(gossip_partner(3, 0, 0, 1), 0);
}

// 4000 meetings with four passive ranks: 1000 with each, give or take 28.
TEST(GossipPartner, IsEachPassiveRankAboutEquallyOftenAndAnotherForEachRankAndSeed) {
  std::map<int, int> drawn;
  std::set<std::vector<int>> rows;
  for (const std::uint64_t seed : {1, 2}) {
    for (int rank = 0; rank < 8; rank += 2) {
      std::vector<int> row;
      for (std::int64_t meeting = 0; meeting < 500; ++meeting) {
        row.push_back(gossip_partner(seed, rank, meeting, 8));
        ++drawn[row.back()];
        EXPECT_EQ(row.back(), gossip_partner(seed, rank, meeting, 8));
      }
      rows.insert(row);
    }
  }
  EXPECT_EQ(rows.size(), 8u);
  EXPECT_EQ(drawn.size(), 4u);
  for (const auto& [partner, times] : drawn) {
    EXPECT_GT(times, 850) << partner;
    EXPECT_LT(times, 1150) << partner;
  }
}

TEST(GossipLedger, LetsActiveRanksAskAndPassiveOnesAnswer) {
  GossipLedger active(0, 4, kElements), passive(3, 4, kElements);
  for (std::uint64_t meeting = 1; meeting <= 3; ++meeting) {
    const GossipHeader asked = active.offer_to(3);
    EXPECT_EQ(asked, offer(meeting));
    EXPECT_EQ(*passive.on_message(0, asked, kBytes), Due::kAnswer);
    EXPECT_EQ(passive.answer_to(0), mean(meeting));
    EXPECT_EQ(*active.on_message(3, mean(meeting), kBytes), Due::kTake);
  }
  EXPECT_EQ(active.offer_to(1), offer(1)) << "meetings are numbered by pair";
  EXPECT_EQ(*passive.on_message(2, offer(1), kBytes), Due::kAnswer);
}

TEST(GossipLedger, DropsWhatHasComeBefore) {
  GossipLedger active(0, 2, kElements), passive(1, 2, kElements);
  EXPECT_EQ(*passive.on_message(0, offer(1), kBytes), Due::kAnswer);
  EXPECT_EQ(*passive.on_message(0, offer(1), kBytes), Due::kDrop);
  (void)active.offer_to(1);
  EXPECT_EQ(*active.on_message(1, mean(1), kBytes), Due::kTake);
  EXPECT_EQ(*active.on_message(1, mean(1), kBytes), Due::kDrop);
  EXPECT_EQ(*active.on_message(1, GossipLedger::end(), 0), Due::kNoted);
  EXPECT_EQ(*active.on_message(1, GossipLedger::end(), 0), Due::kDrop);
  EXPECT_EQ(*active.on_message(1, mean(1), kBytes), Due::kDrop);
}

TEST(GossipLedger, RefusesWhatCannotBe) {
  GossipLedger active(0, 4, kElements), passive(1, 4, kElements);
  EXPECT_THAT(refusal(passive, 0, offer(2)), HasSubstr("rank 0 sent offer 2 of 10 elements in 40 bytes, where 1 was"));
  EXPECT_THAT(refusal(passive, 0, mean(1)), HasSubstr("active ranks ask and passive ones answer"));
  EXPECT_THAT(refusal(passive, 3, offer(1)), HasSubstr("active ranks ask and passive ones answer"));
  EXPECT_THAT(refusal(active, 2, offer(1)), HasSubstr("active ranks ask and passive ones answer"));
  EXPECT_THAT(refusal(active, 2, mean(1)), HasSubstr("active ranks ask and passive ones answer"));
  EXPECT_THAT(refusal(active, 1, mean(1)), HasSubstr("where 0 was due")) << "nobody has asked";
  EXPECT_THAT(refusal(passive, 1, offer(1)), HasSubstr("is no other rank"));
  EXPECT_THAT(refusal(passive, 4, offer(1)), HasSubstr("is no other rank"));
  EXPECT_THAT(refusal(passive, -1, offer(1)), HasSubstr("is no other rank"));
  EXPECT_THAT(refusal(passive, 0, offer(1), kBytes - 4), HasSubstr("where the weights have 10 elements"));
  GossipHeader large = offer(1);
  large.elements = kElements + 1;
  EXPECT_THAT(refusal(passive, 0, large, kBytes + 4), HasSubstr("where the weights have 10 elements"));
  EXPECT_THAT(refusal(passive, 0, {.meeting = 1, .kind = static_cast<GossipHeader::Kind>(7), .elements = kElements}),
              HasSubstr("nothing that ranks say"));
  EXPECT_THAT(refusal(passive, 0, GossipLedger::end(), 4), HasSubstr("an end carries nothing"));
  EXPECT_EQ(*passive.on_message(0, GossipLedger::end(), 0), Due::kNoted);
  EXPECT_THAT(refusal(passive, 0, offer(1)), HasSubstr("behind its end"));
}

TEST(GossipLedger, KnowsWhenAllActiveRanksAndWhenAllHaveEnded) {
  for (int size = 1; size <= 6; ++size) {
    for (int rank = 0; rank < size; ++rank) {
      GossipLedger ledger(rank, size, kElements);
      int active_left = 0, left = size - 1;
      for (int from = 0; from < size; ++from) active_left += from != rank && is_active(from) ? 1 : 0;
      // The passive ones first.
      for (const bool is_active_turn : {false, true}) {
        for (int from = 0; from < size; ++from) {
          EXPECT_EQ(ledger.all_active_have_ended(), active_left == 0);
          EXPECT_EQ(ledger.all_have_ended(), left == 0);
          if (from == rank || is_active(from) != is_active_turn) continue;
          EXPECT_EQ(*ledger.on_message(from, GossipLedger::end(), 0), Due::kNoted);
          --left;
          active_left -= is_active(from) ? 1 : 0;
        }
      }
      EXPECT_TRUE(ledger.all_active_have_ended() && ledger.all_have_ended());
    }
  }
}

}  // namespace
}  // namespace syncopate::allreduce
