#include "experiments/cluster/process/loopback_binds.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>

#include "common/os/socket_address.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

// Returns where a socket that was bound to this address is.
std::string bound_at(const char* host) {
  const Result<SocketAddress> address = SocketAddress::of_host(host);
  const FileDescriptor socket(::socket(address->family(), SOCK_STREAM, 0));
  if (bind(socket.get(), address->get(), address->size()) != 0) return fmt::format("errno {}", errno);
  if (listen(socket.get(), 1) != 0) return "no listener";
  const SocketAddress bound = SocketAddress::of_socket(socket.get());
  return bound.port() == 0 ? "no port" : bound.host();
}

// The same for an address that no text stands for.
std::string bound_to(const sockaddr* address, socklen_t size, int family) {
  const FileDescriptor socket(::socket(family, SOCK_STREAM, 0));
  if (bind(socket.get(), address, size) != 0) return fmt::format("errno {}", errno);
  return SocketAddress::of_socket(socket.get()).host();
}

std::string bound_to_no_family() {
  const sockaddr_in address{.sin_family = AF_UNSPEC, .sin_port = 0, .sin_addr = {}, .sin_zero = {}};
  return bound_to(reinterpret_cast<const sockaddr*>(&address), sizeof(address), AF_INET);
}

std::string bound_to_mapped_interfaces() {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr.s6_addr[10] = address.sin6_addr.s6_addr[11] = 0xff;
  return bound_to(reinterpret_cast<const sockaddr*>(&address), sizeof(address), AF_INET6);
}

// Returns the device that a socket is tied to which listens and has never been bound.
std::string tied_to() {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  std::string failure;
  // Not the first thread, as in a program that has many.
  std::thread([&] {
    if (listen(socket.get(), 1) != 0) failure = fmt::format("errno {}", errno);
  }).join();
  std::array<char, 16> device{};
  socklen_t size = device.size();
  if (getsockopt(socket.get(), SOL_SOCKET, SO_BINDTODEVICE, device.data(), &size) != 0) return "no option";
  return failure.empty() ? std::string(device.data()) : failure;
}

std::string bound_to_a_name() {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  return bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(sa_family_t)) == 0 ? "a name" : "none";
}

// Carries out `what` in a process below one that answers for it, and returns what it returns.
std::string carried_out_below(std::string (*what)()) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t above = fork();
  if (above == 0) {
    const Result<LoopbackBinds> binds = LoopbackBinds::begin();
    if (!binds.ok()) _exit(1);
    const pid_t program = fork();
    if (program == 0) {
      const std::string text = what();
      _exit(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    while (waitpid(program, nullptr, WNOHANG) == 0) {
      pollfd item{.fd = binds->handle(), .events = POLLIN, .revents = 0};
      if (poll(&item, 1, 10) > 0 && (item.revents & POLLIN) != 0) binds->answer();
    }
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 256> bytes;
  for (ssize_t count; (count = read(ends[0], bytes.data(), bytes.size())) > 0;) text.append(bytes.data(), count);
  close(ends[0]);
  int status = 0;
  waitpid(above, &status, 0);
  EXPECT_EQ(status, 0) << "the kernel has no notifications of seccomp";
  return text;
}

TEST(LoopbackBinds, MakesAllInterfacesTheLoopbackOne) {
  EXPECT_EQ(bound_at("0.0.0.0"), "0.0.0.0") << "as it is elsewhere";
  EXPECT_EQ(carried_out_below([] { return bound_at("0.0.0.0"); }), "127.0.0.1");
  const bool has_ipv6 = bound_at("::1") == "::1";
  if (has_ipv6) EXPECT_EQ(carried_out_below([] { return bound_at("::"); }), "::1");
}

TEST(LoopbackBinds, MakesWhatMeansAllInterfacesTheLoopbackOne) {
  EXPECT_EQ(bound_to_no_family(), "0.0.0.0") << "as it is elsewhere";
  EXPECT_EQ(carried_out_below(bound_to_no_family), "127.0.0.1");
  if (bound_at("::1") == "::1")
    EXPECT_THAT(carried_out_below(bound_to_mapped_interfaces), testing::EndsWith("127.0.0.1"));
}

TEST(LoopbackBinds, TiesWhatListensWithoutAnAddressToTheLoopbackDevice) {
  EXPECT_EQ(tied_to(), "") << "as it is elsewhere";
  EXPECT_EQ(carried_out_below(tied_to), "lo");
}

TEST(LoopbackBinds, LeavesEveryOtherAddressAsItIs) {
  EXPECT_EQ(carried_out_below([] { return bound_at("127.0.0.7"); }), "127.0.0.7");
  EXPECT_EQ(carried_out_below(bound_to_a_name), "a name");
  EXPECT_EQ(carried_out_below([] { return bound_at("192.0.2.1"); }), fmt::format("errno {}", EADDRNOTAVAIL))
      << "none of ours";
}

}  // namespace
}  // namespace syncopate::experiments
