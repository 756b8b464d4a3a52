#include "experiments/cluster/host/host_limits.h"

#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

TEST(HostLimits, AreReadAsTheyAreWritten) {
  const HostLimits limits{.cores_online = 8, .core_quota = 1.5, .descriptors = 1024, .interface = "eth0", .mtu = 9000};
  const Result<HostLimits> read = parse_host_limits(to_json_line(limits));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(to_json_line(*read), to_json_line(limits));
  for (const char* line : {"", "{}", "[]", "null", "{\"mtu\":\"9000\"}"}) EXPECT_FALSE(parse_host_limits(line).ok());
}

TEST(HostLimits, OfThisHostAreThere) {
  const HostLimits limits = limits_here("lo");
  EXPECT_GT(limits.cores_online, 0);
  EXPECT_GT(limits.descriptors, 0);
  EXPECT_GT(limits.mtu, 0);
  EXPECT_EQ(limits_here("no-such-device").mtu, 0);
}

}  // namespace
}  // namespace syncopate::experiments
