#include "allreduce/strategy/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allreduce/collective/schedule_collective.h"
#include "tests/support/cluster.h"

namespace syncopate::allreduce {
namespace {

using testing::HasSubstr;
using testing_support::connect_group;
using testing_support::run_ranks;
using testing_support::soon;

ParamLayout agreed_layout(std::int64_t last) {
  ParamLayout layout;
  layout.add("first", {100, 3});
  layout.add("second", {last});
  return layout;
}

// What each of three ranks, each with its own ground, is told.
std::vector<Status> told(const std::vector<GroupAgreement>& grounds) {
  auto group = connect_group("inproc", 3);
  std::vector<Status> statuses(3);
  run_ranks(3, [&](int rank) {
    const auto self = static_cast<std::size_t>(rank);
    const auto ring = make_schedule_collective(*group[self]);
    statuses[self] = prove_agreement(*ring, grounds[self], soon());
  });
  return statuses;
}

TEST(Agreement, IsProvedWhereAllHashesAreTheSameToTheLastBit) {
  const GroupAgreement ground{.layout = ~0ull, .buckets = 0x8000000000000001ull, .collective = 0x123456789abcdef0ull};
  for (const Status& status : told({ground, ground, ground})) EXPECT_TRUE(status.ok()) << status.message();
}

TEST(Agreement, IsRefusedOnEveryRankAndTheMessageSaysWhatDiffersAndWhere) {
  struct Case {
    std::uint64_t GroupAgreement::*hash;
    const char* of_others;
    const char* of_rank_1;
  };
  for (const Case& difference : {Case{&GroupAgreement::layout, "rank 1 has layout 8000000000000000, rank 2 has 0000",
                                      "rank 0 has layout 0000000000000000, rank 1 has 8000"},
                                 Case{&GroupAgreement::buckets, "rank 1 has buckets 8000000000000000, rank 2 has 0000",
                                      "rank 0 has buckets 0000000000000000, rank 1 has 8000"},
                                 Case{&GroupAgreement::collective, "rank 1 has collective 8000000000000000, rank 2 has",
                                      "rank 0 has collective 0000000000000000, rank 1 has 8000"}}) {
    std::vector<GroupAgreement> grounds(3);
    grounds[1].*difference.hash = 1ull << 63;
    const std::vector<Status> statuses = told(grounds);
    for (const Status& status : statuses) EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(statuses[1].message(), HasSubstr(difference.of_rank_1));
    EXPECT_THAT(statuses[2].message(), HasSubstr(difference.of_others));
  }
}

TEST(GroupAgreement, TellsLayoutsBucketsTheirOrderAndCodecsApart) {
  auto group = connect_group("inproc", 1);
  const auto ring = make_schedule_collective(*group[0]);
  const std::vector<Range> buckets{{16, 48}, {0, 16}}, other{{32, 48}, {0, 32}}, turned{{0, 16}, {16, 48}};
  const GroupAgreement ground = group_agreement_of(agreed_layout(40), buckets, *ring);
  EXPECT_EQ(ground, group_agreement_of(agreed_layout(40), buckets, *ring));
  EXPECT_NE(ground.layout, group_agreement_of(agreed_layout(41), buckets, *ring).layout);
  EXPECT_NE(ground.buckets, group_agreement_of(agreed_layout(40), other, *ring).buckets);
  EXPECT_NE(ground.buckets, group_agreement_of(agreed_layout(40), turned, *ring).buckets);
  EXPECT_NE(ground.collective, group_agreement_of(agreed_layout(40), buckets, *ring, *parse_codec("int8")).collective);
}

}  // namespace
}  // namespace syncopate::allreduce
