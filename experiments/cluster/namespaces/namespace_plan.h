// What ip and tc are told to make hosts of network namespaces: the texts of their -batch. Pure.
//
//   host-0                         home, where run_experiment runs                          host-1
//   net 10.77.0.2 ──veth── to-0 ──┐                                     ┌── to-1 ──veth── net 10.77.0.3
//                                 └── switch, a bridge, 10.77.0.1 ──────┘
//
// With racks, a host's device belongs to the bridge of its rack, which a veth pair of its own joins to the switch:
//
//   to-0 ── rack-0 ── up-0 ──veth── down-0 ── switch
//
// A device limits what it sends. So net limits what a host sends, to-0 what it receives, up-0 and down-0 what leaves
// and reaches a rack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/config/simulated_cluster.h"

namespace syncopate::experiments {

inline constexpr std::string_view kSwitchAddress = "10.77.0.1";

// The TCP congestion control of connections between hosts: the usual one, whatever the machine's own is, since steps of
// asynchronous workers, and those of servers beside workers, depend on it by tens of percent.
inline constexpr std::string_view kTcpControl = "cubic";

// "host-3", as numbered hosts are called, and "10.77.0.5". Requires a host below kMostNamespaces.
std::string name_of_namespace(std::size_t host);
std::string address_of_namespace(std::size_t host);

// Returns what /etc/hosts has besides, so that these names are known.
std::string names_of_namespaces(std::size_t hosts);

// Return what `ip -batch` is told at home, before there are hosts; at home for a host, which it makes; and in a host.
std::string switch_script();
std::string host_script(std::size_t host);
std::string inside_host_script(std::size_t host);

// Returns what `ip -batch` is told at home for hosts that are joined so, where there are no racks yet. Rack r has a
// part of the hosts, in order, as in a simulated cluster (simulation/fabric.h).
std::string fabric_script(std::size_t hosts, const FabricChoice& fabric);
// Returns the same to take the racks away.
std::string without_fabric_script(std::size_t hosts, const FabricChoice& fabric);
// Returns the devices at home by which racks are joined to the switch.
std::vector<std::string> rack_devices(const FabricChoice& fabric);
// Returns how much a rack's line carries, of hosts with links of this rate.
std::int64_t rack_rate(std::int64_t bits_per_second, std::size_t hosts, const FabricChoice& fabric);

// Returns the words behind "tc qdisc replace dev DEVICE root" that limit what a device sends. A frame counts as on
// Ethernet, so that what TCP has to say takes the place that it takes there, with the headers of each frame and
// acknowledgements.
std::string limit_words(std::int64_t bits_per_second);

}  // namespace syncopate::experiments
