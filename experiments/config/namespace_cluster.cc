#include "experiments/config/namespace_cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

namespace syncopate::experiments {
namespace {

// Reads "8" as "8x1". Fails for names.
Result<std::vector<HostSlots>> hosts_by_number(std::string_view text) {
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  const bool is_number = !text.empty() && std::ranges::all_of(text, is_digit);
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<HostSlots> hosts,
                             parse_hosts(fmt::format("{}{}", text, is_number ? "x1" : "")));
  if (are_numbered(hosts) && hosts.size() <= kMostNamespaces) return hosts;
  return Status::invalid_argument(
      fmt::format("'{}' must be 1 to {} hosts, as in 8 or, with the slots of each, 4x2", text, kMostNamespaces));
}

}  // namespace

Result<NamespaceCluster> NamespaceCluster::parse(std::string_view text) {
  constexpr std::string_view kLink = "link:";
  const std::size_t comma = text.find(',');
  NamespaceCluster cluster;
  SYNCOPATE_ASSIGN_OR_RETURN(cluster.hosts, hosts_by_number(text.substr(0, comma)));
  if (comma == std::string_view::npos) return cluster;
  const std::string_view rest = text.substr(comma + 1);
  if (!rest.starts_with(kLink)) return Status::invalid_argument(fmt::format("'{}' must be {}", text, forms()));
  SYNCOPATE_ASSIGN_OR_RETURN(cluster.link, LinkShape::parse(rest.substr(kLink.size())));
  return cluster;
}

}  // namespace syncopate::experiments
