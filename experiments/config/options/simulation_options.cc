#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "experiments/config/options/conditions.h"
#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"

namespace syncopate::experiments {
namespace {

using option_kinds::choice;
using option_kinds::only;

constexpr const char* kGroup = "Simulated cluster";

constexpr std::string_view kDescribed = "simulated:";
constexpr std::string_view kNamespaces = "namespaces:";

// What was given beside it is checked by the rules, since options come in any order.
Status take_namespaces(std::string_view text, RunRequest& request) {
  SYNCOPATE_ASSIGN_OR_RETURN(request.described_namespaces, NamespaceCluster::parse(text));
  if (request.hosts.empty()) request.hosts = request.described_namespaces->hosts;
  if (!request.shape) request.shape = request.described_namespaces->link;
  return {};
}

OptionSpec cluster() {
  OptionSpec option{.group = kGroup,
                    .name = "cluster",
                    .placeholder = "KIND",
                    .sentence =
                        "Where the processes run: on real hosts; on namespaces, hosts that the run makes itself on "
                        "this machine, behind links that the kernel limits (as root); or simulated, as actors of one "
                        "program in virtual time, which is the same at every call; simulated:FILE is a cluster as "
                        "calibrate writes it.",
                    .range = "real, simulated, simulated:FILE or namespaces:HOSTS[xSLOTS][,link:RATE[+DELAY]]",
                    .usual = "real",
                    .is_text = true};
  option.set = [option](RunRequest& request, const std::string& value) -> Status {
    request.described_cluster.reset();
    request.described_namespaces.reset();
    if (value.starts_with(kDescribed) && value.size() > kDescribed.size()) {
      Result<ClusterDescription> described = open_cluster(value.substr(kDescribed.size()));
      if (!described.ok()) return described.status().in(fmt::format("--cluster={}", value));
      request.described_cluster = std::move(*described);
      request.cluster = ClusterKind::kSimulated;
      return {};
    }
    if (value.starts_with(kNamespaces)) {
      request.cluster = ClusterKind::kNamespaces;
      return take_namespaces(value.substr(kNamespaces.size()), request).in(fmt::format("--cluster={}", value));
    }
    for (const ClusterKind kind : {ClusterKind::kReal, ClusterKind::kNamespaces, ClusterKind::kSimulated}) {
      if (value != name_of(kind)) continue;
      request.cluster = kind;
      return {};
    }
    return option_kinds::wrong(option, value, "cluster");
  };
  // What a file says of the run stands in its own options.
  option.get = [](const ResolvedRun& config) { return std::string(name_of(config.cluster)); };
  return option;
}

OptionSpec compute() {
  OptionSpec option{.group = kGroup,
                    .name = "compute",
                    .placeholder = "TIME|RATE|DEVICE|FILE",
                    .sentence =
                        "How long a worker computes for a step: a time, of which forward takes a third; the "
                        "model's FLOPs by a device's rate; what others have measured of the model on a known device, "
                        "told with its source (predict and advise take these three, too; --device is where a run "
                        "computes by itself); as a profile says; or solo, what this machine takes with nothing else to "
                        "do, measured before the run.",
                    .range = ComputeModel::forms(),
                    .usual = "as the cluster's file or the model's profile says, else solo",
                    .is_text = true};
  option.set = [option](RunRequest& request, const std::string& value) -> Status {
    const Result<ComputeModel> parsed = ComputeModel::parse(value);
    if (!parsed.ok()) return option_kinds::wrong(option, value, "compute");
    request.compute = *parsed;
    return {};
  };
  option.get = [](const ResolvedRun& config) { return config.compute.to_string(); };
  return option;
}

OptionSpec processing() {
  OptionSpec option{.group = kGroup,
                    .name = "processing",
                    .placeholder = "RATES",
                    .sentence =
                        "How many bytes a second a process sums, updates, encodes and decodes; what has no "
                        "rate takes no time. solo: what this machine does, measured before the run.",
                    .range = ProcessingModel::forms(),
                    .usual = "as the cluster's file says, else solo beside --compute=solo, else none",
                    .is_text = true};
  option.set = [option](RunRequest& request, const std::string& value) -> Status {
    const Result<ProcessingModel> parsed = ProcessingModel::parse(value);
    if (!parsed.ok()) return option_kinds::wrong(option, value, "processing");
    request.processing = *parsed;
    return {};
  };
  option.get = [](const ResolvedRun& config) { return config.processing.to_string(); };
  return option;
}

OptionSpec fabric() {
  OptionSpec option{.group = kGroup,
                    .name = "fabric",
                    .placeholder = "FABRIC",
                    .sentence =
                        "How hosts are connected: by one switch, or in R racks with a switch each, whose line "
                        "to the others carries a K-th of what the rack's hosts can send.",
                    .range = FabricChoice::forms(),
                    .usual = "switch",
                    .is_text = true};
  option.set = [option](RunRequest& request, const std::string& value) -> Status {
    const Result<FabricChoice> parsed = FabricChoice::parse(value);
    if (!parsed.ok()) return option_kinds::wrong(option, value, "fabric");
    request.fabric = *parsed;
    return {};
  };
  option.get = [](const ResolvedRun& config) { return config.fabric.to_string(); };
  return option;
}

OptionSpec inside() {
  OptionSpec option{.group = kGroup,
                    .name = "inside",
                    .placeholder = "RATE[+DELAY]",
                    .sentence = "What processes of one host share with each other; --shape is then the link of a host.",
                    .range = LinkShape::forms(),
                    .usual = usual_link_inside().to_string(),
                    .is_text = true};
  option.set = [option](RunRequest& request, const std::string& value) -> Status {
    const Result<LinkShape> parsed = LinkShape::parse(value);
    if (!parsed.ok()) return option_kinds::wrong(option, value, "link");
    request.inside = *parsed;
    return {};
  };
  option.get = [](const ResolvedRun& config) { return config.inside.to_string(); };
  return option;
}

}  // namespace

void add_simulation_options(std::vector<OptionSpec>& table) {
  using simulation::NetworkModel;
  table.push_back(cluster());
  table.push_back(
      only(choice({.group = kGroup,
                   .name = "network",
                   .placeholder = "MODEL",
                   .sentence = "How messages share links: one after the other (fifo), in frames that take "
                               "turns (frames), or side by side at max-min fair rates (fluid)."},
                  &RunRequest::network, "network", {NetworkModel::kFifo, NetworkModel::kFrames, NetworkModel::kFluid}),
           conditions::kSimulated));
  table.push_back(only(fabric(), conditions::kOwnFabric));
  table.push_back(only(inside(), conditions::kSimulatedHosts));
  table.push_back(only(compute(), conditions::kSimulated));
  table.push_back(only(processing(), conditions::kSimulated));
}

}  // namespace syncopate::experiments
