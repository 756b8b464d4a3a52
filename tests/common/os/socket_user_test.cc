#include "common/os/socket_user.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/os/file_descriptor.h"
#include "common/os/tcp_socket.h"

namespace syncopate {
namespace {

TEST(SocketUser, IsWhoListens) {
  for (const char* host : {"127.0.0.1", "0.0.0.0", "::"}) {
    const Result<FileDescriptor> listener = listen_over_tcp(*SocketAddress::of_host(host));
    if (!listener.ok()) continue;  // no IPv6 here
    SocketAddress place = *SocketAddress::of_host("127.0.0.1", SocketAddress::of_socket(listener->get()).port());
    EXPECT_EQ(user_who_listens_at(place), geteuid()) << host;
  }
  SocketAddress nobody_there = *SocketAddress::of_host("127.0.0.1", 1);
  EXPECT_EQ(user_who_listens_at(nobody_there), std::nullopt);
}

TEST(SocketUser, IsWhoHasConnected) {
  const FileDescriptor listener = std::move(*listen_over_tcp(*SocketAddress::of_host("127.0.0.1")));
  const SocketAddress place = SocketAddress::of_socket(listener.get());
  const FileDescriptor caller(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(caller.get(), place.get(), place.size()), 0);
  const FileDescriptor called(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_EQ(user_at_other_end(called.get()), geteuid());
}

TEST(SocketUser, HasANameForPeople) {
  EXPECT_EQ(describe_user(geteuid()), "this user (uid " + std::to_string(geteuid()) + ")");
  EXPECT_THAT(describe_user(4'000'000'000U), testing::HasSubstr("uid 4000000000"));
}

}  // namespace
}  // namespace syncopate
