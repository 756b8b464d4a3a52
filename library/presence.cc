#include "library/presence.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <vector>

#include "common/os/local_address.h"
#include "common/text/printable_text.h"
#include "library/socket_address.h"

namespace syncopate::library {
namespace {

constexpr char kSeparator = '|';
constexpr std::size_t kParts = 7;

std::string inode_of(const char* path) {
  struct stat status {};
  return stat(path, &status) == 0 ? std::to_string(status.st_ino) : "?";
}

// Containers of one host have one boot id, and namespaces of their own.
std::string kernel_name() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return fmt::format("{}/{}/{}", boot, inode_of("/proc/self/ns/pid"), inode_of("/proc/self/ns/net"));
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  return name;
}

}  // namespace

Result<Presence> Presence::of_this_process(const std::string& meets_at, const std::string& address) {
  Presence presence{.host = host_name(), .kernel = kernel_name(), .pid = getpid(), .address = address};
  if (!address.empty()) SYNCOPATE_RETURN_IF_ERROR(check_own_address(address));
  if (meets_at.empty()) return presence;
  SYNCOPATE_ASSIGN_OR_RETURN(const SocketAddress place, resolve(meets_at + ":0"));
  presence.meets_at = place.host();
  if (!address.empty()) return presence;
  SYNCOPATE_ASSIGN_OR_RETURN(presence.address, local_address_towards(presence.meets_at));
  return presence;
}

std::string Presence::to_text() const {
  return fmt::format("{1}{0}{2}{0}{3}{0}{4}{0}{5}{0}{6}{0}{7}", kSeparator, host, kernel, pid, secret_at, run_id,
                     address, meets_at);
}

Result<Presence> Presence::parse(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char each : text) {
    if (each == kSeparator) {
      parts.emplace_back();
    } else {
      parts.back() += each;
    }
  }
  Presence presence;
  if (parts.size() == kParts) {
    const std::string& pid = parts[2];
    const auto [end, error] = std::from_chars(pid.data(), pid.data() + pid.size(), presence.pid);
    if (error == std::errc() && end == pid.data() + pid.size()) {
      presence.host = printable(parts[0]);
      presence.kernel = parts[1];
      presence.secret_at = parts[3];
      presence.run_id = parts[4];
      presence.address = printable(parts[5]);
      presence.meets_at = printable(parts[6]);
      return presence;
    }
  }
  return Status::data_loss("a rank says of itself what this version does not understand");
}

bool is_loopback(const std::string& address) {
  const Result<SocketAddress> parsed = SocketAddress::of_host(address);
  return parsed.ok() && parsed->is_loopback();
}

}  // namespace syncopate::library
