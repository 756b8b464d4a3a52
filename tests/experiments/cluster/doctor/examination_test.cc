#include "experiments/cluster/doctor/examination.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace syncopate::experiments {
namespace {

TEST(RoundsOfPairs, HaveEachPairOnceAndNoHostTwiceInARound) {
  for (std::size_t hosts = 0; hosts <= 9; ++hosts) {
    std::set<std::pair<std::size_t, std::size_t>> all;
    std::size_t count = 0;
    for (const auto& round : rounds_of_pairs(hosts)) {
      std::set<std::size_t> busy;
      for (const auto& [one, other] : round) {
        EXPECT_LT(one, other);
        EXPECT_LT(other, hosts);
        EXPECT_TRUE(busy.insert(one).second && busy.insert(other).second);
        all.emplace(one, other);
        ++count;
      }
    }
    EXPECT_EQ(count, hosts * (hosts > 0 ? hosts - 1 : 0) / 2) << hosts;
    EXPECT_EQ(all.size(), count);
  }
}

}  // namespace
}  // namespace syncopate::experiments
