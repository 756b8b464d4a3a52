#include "common/os/local_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate {
namespace {

using testing::HasSubstr;

TEST(LocalAddress, TowardsThisHostIsTheLoopbackInterfaces) {
  const Result<std::string> address = local_address_towards("127.0.0.1");
  ASSERT_TRUE(address.ok()) << address.status().message();
  EXPECT_EQ(*address, "127.0.0.1");
  EXPECT_EQ(interface_of(*address), "lo");
}

TEST(LocalAddress, IsOfIpv6WhereOnlyThatLeadsThere) {
  const Result<std::string> address = local_address_towards("::1");
  if (!address.ok()) GTEST_SKIP() << "no IPv6 here: " << address.status().message();
  EXPECT_EQ(*address, "::1");
  EXPECT_EQ(interface_of(*address), "lo");
  EXPECT_TRUE(check_own_address("::1").ok());
}

TEST(LocalAddress, TowardsANameThatNobodyHasIsNotFound) {
  const Result<std::string> address = local_address_towards("no-such-host.invalid");
  EXPECT_EQ(address.status().code(), Code::kNotFound);
  EXPECT_THAT(address.status().message(), HasSubstr("no-such-host.invalid: no address is known"));
}

TEST(LocalAddress, OfAnotherHostIsNotOurs) {
  EXPECT_TRUE(check_own_address("127.0.0.1").ok());
  EXPECT_THAT(check_own_address("192.0.2.1").message(), HasSubstr("192.0.2.1: must be an address of this host"));
  EXPECT_THAT(check_own_address("home").message(), HasSubstr("home: must be an IPv4 or IPv6 address"));
  EXPECT_EQ(interface_of("192.0.2.1"), "");
}

}  // namespace
}  // namespace syncopate
