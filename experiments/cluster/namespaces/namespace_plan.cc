#include "experiments/cluster/namespaces/namespace_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace syncopate::experiments {
namespace {

constexpr std::string_view kNetwork = "10.77.0.0", kMask = "/16";

std::size_t hosts_per_rack(std::size_t hosts, const FabricChoice& fabric) {
  const auto racks = static_cast<std::size_t>(fabric.racks);
  return (hosts + racks - 1) / racks;
}

bool has_racks(const FabricChoice& fabric) { return fabric.racks > 1; }

}  // namespace

std::string name_of_namespace(std::size_t host) { return fmt::format("host-{}", host); }

std::string address_of_namespace(std::size_t host) {
  const std::size_t number = host + 2;  // behind home's
  return fmt::format("10.77.{}.{}", number / 256, number % 256);
}

std::string names_of_namespaces(std::size_t hosts) {
  std::string text;
  for (std::size_t host = 0; host < hosts; ++host) {
    text += fmt::format("{} {}\n", address_of_namespace(host), name_of_namespace(host));
  }
  return text;
}

std::string switch_script() {
  return fmt::format(
      "link set lo up\n"
      "link add switch type bridge\n"
      "addr add {}{} dev switch\n"
      "link set switch up\n",
      kSwitchAddress, kMask);
}

std::string host_script(std::size_t host) {
  return fmt::format(
      "netns add {0}\n"
      "link add to-{1} type veth peer name net netns {0}\n"
      "link set dev to-{1} gso_max_segs 1\n"
      "link set to-{1} master switch up\n",
      name_of_namespace(host), host);
}

std::string inside_host_script(std::size_t host) {
  return fmt::format(
      "link set lo up\n"
      "link set dev net gso_max_segs 1\n"
      "addr add {0}{1} dev net noprefixroute\n"
      "link set net up\n"
      "route add {2}{1} dev net src {0} congctl {3}\n",
      address_of_namespace(host), kMask, kNetwork, kTcpControl);
}

std::string fabric_script(std::size_t hosts, const FabricChoice& fabric) {
  if (!has_racks(fabric)) return {};
  std::string text;
  for (int rack = 0; rack < fabric.racks; ++rack) {
    text += fmt::format(
        "link add rack-{0} type bridge\n"
        "link set rack-{0} up\n"
        "link add up-{0} type veth peer name down-{0}\n"
        "link set dev up-{0} gso_max_segs 1\n"
        "link set dev down-{0} gso_max_segs 1\n"
        "link set up-{0} master rack-{0} up\n"
        "link set down-{0} master switch up\n",
        rack);
  }
  for (std::size_t host = 0; host < hosts; ++host) {
    text += fmt::format("link set to-{} master rack-{}\n", host, host / hosts_per_rack(hosts, fabric));
  }
  return text;
}

std::string without_fabric_script(std::size_t hosts, const FabricChoice& fabric) {
  if (!has_racks(fabric)) return {};
  std::string text;
  for (std::size_t host = 0; host < hosts; ++host) text += fmt::format("link set to-{} master switch\n", host);
  for (int rack = 0; rack < fabric.racks; ++rack) text += fmt::format("link del up-{0}\nlink del rack-{0}\n", rack);
  return text;
}

std::vector<std::string> rack_devices(const FabricChoice& fabric) {
  std::vector<std::string> devices;
  for (int rack = 0; has_racks(fabric) && rack < fabric.racks; ++rack) {
    devices.push_back(fmt::format("up-{}", rack));
    devices.push_back(fmt::format("down-{}", rack));
  }
  return devices;
}

std::int64_t rack_rate(std::int64_t bits_per_second, std::size_t hosts, const FabricChoice& fabric) {
  const double rate = static_cast<double>(bits_per_second) * static_cast<double>(hosts_per_rack(hosts, fabric));
  return std::max<std::int64_t>(1000, std::llround(rate / fabric.oversubscription));
}

std::string limit_words(std::int64_t bits_per_second) {
  constexpr std::int64_t kFrame = 1514 + 24;    // head, and preamble, checksum and gap that follow the card
  constexpr std::int64_t kTimerBits = 100'000;  // a part of a second: as late as a timer may come without a gap
  const std::int64_t burst = std::max(4 * kFrame, bits_per_second / kTimerBits * 10 / 8);
  // A switch that drops nothing: what TCP would do about losses is not what is asked.
  constexpr std::int64_t kQueue = 50'000'000;
  return fmt::format("stab overhead 24 linklayer ethernet tbf rate {}bit burst {} limit {}", bits_per_second, burst,
                     kQueue);
}

}  // namespace syncopate::experiments
