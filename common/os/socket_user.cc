#include "common/os/socket_user.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>

namespace syncopate {
namespace {

constexpr const char* kListens = "0A";

// As /proc/net/tcp has it: words of 32 bits in the order of the machine, then the port.
std::string entry_of(const SocketAddress& address) {
  std::string text;
  if (address.family() == AF_INET6) {
    std::array<std::uint32_t, 4> words;
    std::memcpy(words.data(), &reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr, sizeof(words));
    for (const std::uint32_t word : words) text += fmt::format("{:08X}", word);
  } else {
    text = fmt::format("{:08X}", reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr.s_addr);
  }
  return fmt::format("{}:{:04X}", text, address.port());
}

using Wanted = std::function<bool(const std::string& local, const std::string& remote, const std::string& state)>;

std::optional<uid_t> user_of_first(const char* table, const Wanted& wanted) {
  std::ifstream lines(table);
  std::string line;
  std::getline(lines, line);  // the columns' names
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer, retransmits;
    uid_t user = 0;
    if (!(words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user)) continue;
    if (wanted(local, remote, state)) return user;
  }
  return std::nullopt;
}

constexpr const char* kTable = "/proc/self/net/tcp";
constexpr const char* kTable6 = "/proc/self/net/tcp6";

}  // namespace

std::optional<uid_t> user_who_listens_at(const SocketAddress& address) {
  const std::string own = entry_of(address), port = own.substr(own.find(':'));
  const Wanted listens = [&](const std::string& local, const std::string&, const std::string& state) {
    const bool everywhere = local.find_first_not_of('0') == local.find(':') && local.ends_with(port);
    return state == kListens && (local == own || everywhere);
  };
  if (const std::optional<uid_t> user = user_of_first(kTable, listens)) return user;
  return user_of_first(kTable6, listens);
}

std::optional<uid_t> user_at_other_end(int connection) {
  sockaddr_storage other{};
  socklen_t size = sizeof(other);
  if (getpeername(connection, reinterpret_cast<sockaddr*>(&other), &size) != 0) return std::nullopt;
  const std::string theirs = entry_of(SocketAddress::of(reinterpret_cast<const sockaddr*>(&other)));
  const std::string own = entry_of(SocketAddress::of_socket(connection));
  return user_of_first(other.ss_family == AF_INET6 ? kTable6 : kTable,
                       [&](const std::string& local, const std::string& remote, const std::string&) {
                         return local == theirs && remote == own;
                       });
}

std::string describe_user(uid_t user) {
  if (user == geteuid()) return fmt::format("this user (uid {})", user);
  passwd entry{}, *found = nullptr;
  std::array<char, 4096> names;
  getpwuid_r(user, &entry, names.data(), names.size(), &found);
  return found == nullptr ? fmt::format("a user of uid {}", user)
                          : fmt::format("user {} (uid {})", found->pw_name, user);
}

}  // namespace syncopate
