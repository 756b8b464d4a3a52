#include "common/os/socket_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate {
namespace {

using testing::HasSubstr;

TEST(SocketAddress, ComesBackFromItsText) {
  for (const char* text : {"10.0.0.7:4711", "[fd00::7]:4711", "[::1]:1", "127.0.0.1:65535"}) {
    const Result<SocketAddress> address = SocketAddress::parse(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_EQ(address->to_string(), text);
  }
  EXPECT_EQ(SocketAddress::parse("[fd00:0:0::7]:4711")->host(), "fd00::7");
  EXPECT_EQ(SocketAddress::parse("[fd00::7]:4711")->port(), 4711);
}

TEST(SocketAddress, IsNothingElse) {
  for (const char* wrong : {"", ":", "10.0.0.7", "10.0.0.7:", "10.0.0.7:0", "10.0.0.7:65536", "10.0.0.7:1x", "10.0.0:1",
                            "host:1", "fd00::7:4711x", "fd00::7", "[10.0.0.7]:1", "[fd00::7]", "[fd00::7:1", "[]:1"}) {
    EXPECT_EQ(SocketAddress::parse(wrong).status().code(), Code::kInvalidArgument) << wrong;
  }
  EXPECT_THAT(SocketAddress::of_host("home").status().message(), HasSubstr("home: must be an IPv4 or IPv6 address"));
}

TEST(SocketAddress, KnowsTheOwnHosts) {
  for (const char* own : {"127.0.0.1", "127.0.1.1", "::1"}) EXPECT_TRUE(SocketAddress::of_host(own)->is_loopback());
  for (const char* other : {"10.0.0.7", "128.0.0.1", "fd00::1"}) {
    EXPECT_FALSE(SocketAddress::of_host(other)->is_loopback()) << other;
  }
}

TEST(SocketAddress, PutsBracketsWhereTheAddressHasColons) {
  EXPECT_EQ(with_port("10.0.0.7", "*"), "10.0.0.7:*");
  EXPECT_EQ(with_port("fd00::7", "*"), "[fd00::7]:*");
}

}  // namespace
}  // namespace syncopate
