#include "ps/policy/host_groups.h"

#include <gtest/gtest.h>

namespace syncopate::ps {
namespace {

TEST(HostGroups, HaveAllWorkersOnOneHostUnlessTold) {
  const HostGroups hosts;
  for (const int worker : {0, 1, 1023}) {
    EXPECT_EQ(hosts.host_of(worker), 0);
    EXPECT_EQ(hosts.pusher_for(worker), worker);
    EXPECT_EQ(hosts.gradients_in_push(worker), 1);
  }
}

TEST(HostGroups, FillHostsInOrder) {
  const HostGroups hosts({2, 1, 3}, false);
  const int expected[] = {0, 0, 1, 2, 2, 2};
  for (int worker = 0; worker < 6; ++worker) {
    EXPECT_EQ(hosts.host_of(worker), expected[worker]);
    EXPECT_EQ(hosts.pusher_for(worker), worker);
    EXPECT_EQ(hosts.gradients_in_push(worker), 1);
  }
}

TEST(HostGroups, LetTheLowestPushForAllOfItsHostWhereAggregated) {
  const HostGroups hosts({2, 1, 3}, true);
  const int expected[] = {0, 0, 2, 3, 3, 3};
  for (int worker = 0; worker < 6; ++worker) EXPECT_EQ(hosts.pusher_for(worker), expected[worker]);
  EXPECT_EQ(hosts.gradients_in_push(0), 2);
  EXPECT_EQ(hosts.gradients_in_push(2), 1);
  EXPECT_EQ(hosts.gradients_in_push(3), 3);
}

}  // namespace
}  // namespace syncopate::ps
