#include "tests/support/private_network.h"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/file_descriptor.h"

namespace syncopate::testing_support {
namespace {

bool raise_loopback() {
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{.ifr_ifrn = {.ifrn_name = "lo"}, .ifr_ifru = {}};
  if (ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return false;
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  return ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

}  // namespace

bool enter_private_network() {
  static const bool is_there = geteuid() == 0 && unshare(CLONE_NEWNET) == 0 && raise_loopback();
  return is_there;
}

}  // namespace syncopate::testing_support
