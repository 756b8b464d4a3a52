#include "tests/support/private_network.h"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "common/os/file_descriptor.h"

namespace syncopate::testing_support {
namespace {

bool raise_loopback() {
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{.ifr_ifrn = {.ifrn_name = "lo"}, .ifr_ifru = {}};
  if (ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return false;
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  return ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

// Those who are not root need a space of users of their own, in which they are who they were, and have nobody beside.
bool leave_network() {
  const uid_t user = geteuid();
  const gid_t group = getegid();
  if (user == 0) return unshare(CLONE_NEWNET) == 0;
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << user << " " << user << " 1";
  std::ofstream("/proc/self/gid_map") << group << " " << group << " 1";
  return geteuid() == user;
}

}  // namespace

bool enter_private_network() {
  static const bool is_there = leave_network() && raise_loopback();
  return is_there;
}

bool can_become_another_user() { return geteuid() == 0 && enter_private_network(); }

}  // namespace syncopate::testing_support
