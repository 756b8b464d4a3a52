// NamespaceCluster: what --cluster=namespaces:… says of hosts that the run makes itself, of network namespaces. Pure.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "common/transport/link_shape.h"
#include "experiments/config/host_list.h"

namespace syncopate::experiments {

// The most hosts that share one machine; each has an address in 10.77.0.0/16 and a device of the bridge.
inline constexpr int kMostNamespaces = 64;

struct NamespaceCluster {
  std::vector<HostSlots> hosts;   // numbered: host-0, host-1, ...; as --hosts
  std::optional<LinkShape> link;  // of each host, as --shape

  // "8", "4x2", "8,link:1gbit" or "4x2,link:100mbit+5ms".
  static Result<NamespaceCluster> parse(std::string_view text);
  static const char* forms() { return "HOSTS or HOSTSxSLOTS, with ,link:RATE[+DELAY] behind it if wanted"; }

  bool operator==(const NamespaceCluster&) const = default;
};

}  // namespace syncopate::experiments
