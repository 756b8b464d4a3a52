#include "experiments/cluster/command/free_port.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/os/file_descriptor.h"
#include "common/os/socket_address.h"
#include "common/random.h"

namespace syncopate::experiments {
namespace {

// Below the ports that the kernel gives to connections which ask for none.
constexpr int kFirstPort = 20000, kPorts = 12768;
constexpr int kMostTries = 200;

bool is_free(const std::string& host, int port) {
  const Result<SocketAddress> address = SocketAddress::of_host(host, static_cast<std::uint16_t>(port));
  if (!address.ok()) return false;
  const FileDescriptor socket(::socket(address->family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  return socket.open() && bind(socket.get(), address->get(), address->size()) == 0;
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
