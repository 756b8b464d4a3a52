#include "experiments/cluster/command/free_port.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/os/file_descriptor.h"
#include "common/random.h"

namespace syncopate::experiments {
namespace {

// Below the ports that the kernel gives to connections which ask for none.
constexpr int kFirstPort = 20000, kPorts = 12768;
constexpr int kMostTries = 200;

bool is_free(const std::string& host, int port) {
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  if (!socket.open() || inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return false;
  return bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

}  // namespace

Result<int> free_port(const std::string& address) {
  Random random(static_cast<std::uint64_t>(SteadyClock().now().time_since_epoch().count()),
                static_cast<std::uint64_t>(getpid()));
  for (int i = 0; i < kMostTries; ++i) {
    const int port = kFirstPort + static_cast<int>(random.below(kPorts));
    if (is_free(address, port)) return port;
  }
  return Status::resource_exhausted(
      fmt::format("no free port among {} to {} of {}", kFirstPort, kFirstPort + kPorts - 1, address));
}

}  // namespace syncopate::experiments
