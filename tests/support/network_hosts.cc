#include "tests/support/network_hosts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace syncopate::testing_support {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNames[] = {"home", "a", "b"};

bool shell(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

void must(const std::string& command) {
  if (!shell(command)) ADD_FAILURE() << "failed: " << command;
}

}  // namespace

std::string NetworkHosts::why_not() {
  if (geteuid() != 0) return "only root may make network namespaces";
  if (!shell("ip -V")) return "there is no iproute2";
  if (!shell("unshare --uts hostname host")) return "a host cannot be given a name of its own here";
  const std::string probe = fmt::format("syncopate-{}-probe", getpid());
  const bool made = shell("ip netns add " + probe) && shell(fmt::format("ip -n {} link add one type bridge", probe)) &&
                    shell(fmt::format("ip -n {0} link add two type veth peer name three", probe));
  shell("ip netns del " + probe);
  return made ? "" : "the kernel makes no network namespaces, bridges or veth pairs here";
}

NetworkHosts::NetworkHosts() {
  static std::atomic<int> number{0};
  prefix_ = fmt::format("syncopate-{}-{}", getpid(), number++);
  for (const char* name : kNames) {
    must("ip netns add " + namespace_of(name));
    must(fmt::format("ip -n {} link set lo up", namespace_of(name)));
  }
  const std::string home = namespace_of("home");
  must(fmt::format("ip -n {} link add switch type bridge", home));
  must(fmt::format("ip -n {} addr add {}/24 dev switch", home, address_of("home")));
  has_ipv6_ = shell(fmt::format("ip -n {} addr add {}/64 dev switch nodad", home, ipv6_address_of("home")));
  must(fmt::format("ip -n {} link set switch up", home));
  for (const char* name : {"a", "b"}) {
    must(fmt::format("ip -n {} link add to-{} type veth peer name net netns {}", home, name, namespace_of(name)));
    must(fmt::format("ip -n {} link set to-{} master switch up", home, name));
    must(fmt::format("ip -n {} addr add {}/24 dev net", namespace_of(name), address_of(name)));
    shell(fmt::format("ip -n {} addr add {}/64 dev net nodad", namespace_of(name), ipv6_address_of(name)));
    must(fmt::format("ip -n {} link set net up", namespace_of(name)));
  }
  std::ofstream script(folder_.path() / "shell");
  script << "#!/bin/sh\ncase $1 in\n";
  for (const char* name : kNames) {
    // A name of its own: Open MPI's daemons of one name would share a folder.
    script << address_of(name) << "|" << ipv6_address_of(name) << "|" << name << ") exec ip netns exec "
           << namespace_of(name) << " unshare --uts sh -c 'hostname " << name << " && exec sh -c \"$0\"' \"$2\" ;;\n";
  }
  script << "esac\necho \"no route to $1\" >&2\nexit 255\n";
  script.close();
  fs::permissions(folder_.path() / "shell", fs::perms::owner_all);
}

NetworkHosts::~NetworkHosts() {
  for (const char* name : kNames) must("ip netns del " + namespace_of(name));
}

std::string NetworkHosts::address_of(const std::string& host) {
  return host == "home" ? "10.77.0.1" : host == "a" ? "10.77.0.2" : "10.77.0.3";
}

std::string NetworkHosts::ipv6_address_of(const std::string& host) {
  return host == "home" ? "fd77::1" : host == "a" ? "fd77::2" : "fd77::3";
}

std::string NetworkHosts::slots(const std::string& list) {
  std::string text;
  std::istringstream entries(list);
  for (std::string entry; std::getline(entries, entry, ',');) {
    const std::size_t colon = entry.find(':');
    const std::string host = entry.substr(0, colon);
    text += (text.empty() ? "" : ",") + (host == "localhost" ? host : address_of(host)) + entry.substr(colon);
  }
  return text;
}

std::vector<std::string> NetworkHosts::on(const std::string& host) const {
  return {"/usr/bin/env", "ip", "netns", "exec", namespace_of(host)};
}

std::vector<std::string> NetworkHosts::named(const std::string& host) const {
  std::vector<std::string> command = on(host);
  command.insert(command.end(), {"unshare", "--uts", "sh", "-c", "hostname \"$0\" && exec \"$@\"", host});
  return command;
}

std::vector<std::string> NetworkHosts::knowing_names(const std::string& names) const {
  const std::string file = (folder_.path() / "names").string();
  std::ofstream(file) << names;
  std::vector<std::string> command = on("home");
  command.insert(command.end(),
                 {"unshare", "--mount", "sh", "-c", "mount --bind " + file + " /etc/hosts && exec \"$@\"", "sh"});
  return command;
}

bool NetworkHosts::limit(const std::string& host, const std::string& rate) const {
  const auto limited = [&](const std::string& where, const std::string& device) {
    // Frames one by one, each with the 24 bytes that Ethernet adds behind the card; four may pass at once.
    return shell(fmt::format("ip -n {} link set dev {} gso_max_segs 1", where, device)) &&
           shell(
               fmt::format("ip netns exec {} tc qdisc add dev {} root stab overhead 24 linklayer ethernet tbf rate {} "
                           "burst 6056 limit 50000000",
                           where, device, rate));
  };
  return limited(namespace_of(host), "net") && limited(namespace_of("home"), "to-" + host);
}

std::string NetworkHosts::remote_shell() const { return "--remote-shell=" + (folder_.path() / "shell").string(); }

void NetworkHosts::add_second_network() const {
  const std::string home = namespace_of("home");
  must(fmt::format("ip -n {} link add switch2 type bridge", home));
  must(fmt::format("ip -n {} addr add {}/24 dev switch2", home, second_address_of("home")));
  must(fmt::format("ip -n {} link set switch2 up", home));
  for (const char* name : {"a", "b"}) {
    must(fmt::format("ip -n {} link add to2-{} type veth peer name net2 netns {}", home, name, namespace_of(name)));
    must(fmt::format("ip -n {} link set to2-{} master switch2 up", home, name));
    must(fmt::format("ip -n {} addr add {}/24 dev net2", namespace_of(name), second_address_of(name)));
    must(fmt::format("ip -n {} link set net2 up", namespace_of(name)));
  }
}

std::string NetworkHosts::second_address_of(const std::string& host) {
  return host == "home" ? "10.78.0.1" : host == "a" ? "10.78.0.2" : "10.78.0.3";
}

std::int64_t NetworkHosts::bytes_sent(const std::string& host, Network network) const {
  const fs::path file = folder_.path() / "bytes";
  // Not /sys, which would have to be mounted anew in the namespace.
  must(fmt::format("sh -c 'ip netns exec {} cat /proc/net/dev > {}'", namespace_of(host), file.string()));
  std::ifstream lines(file);
  const std::string device = network == Network::kFirst ? "net:" : "net2:";
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (word != device) continue;
    constexpr int kSent = 9;  // the column, behind eight of what has been received
    std::int64_t bytes = 0;
    for (int column = 1; column <= kSent; ++column) words >> bytes;
    return bytes;
  }
  ADD_FAILURE() << host << " has no device " << device;
  return 0;
}

void NetworkHosts::set_mtu(const std::string& host, int bytes) const {
  must(fmt::format("ip -n {} link set net mtu {}", namespace_of(host), bytes));
}

void NetworkHosts::cut(const std::string& host) const {
  must(fmt::format("ip -n {} link set to-{} down", namespace_of("home"), host));
}

std::string NetworkHosts::namespace_of(const std::string& host) const { return prefix_ + "-" + host; }

}  // namespace syncopate::testing_support
