#include "experiments/config/options/conditions.h"
#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"

namespace syncopate::experiments {
namespace {

using option_kinds::choice;
using option_kinds::only;

constexpr const char* kGroup = "Simulated cluster";

OptionSpec compute() {
  OptionSpec option{.group = kGroup,
                    .name = "compute",
                    .placeholder = "TIME|RATE",
                    .sentence =
                        "How long a worker computes for a step: a time, of which forward takes a third; the "
                        "model's FLOPs by a device's rate; or solo, what this machine takes with nothing else to do, "
                        "measured before the run.",
                    .range = ComputeModel::forms(),
                    .usual = "solo",
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
  table.push_back(choice({.group = kGroup,
                          .name = "cluster",
                          .placeholder = "KIND",
                          .sentence = "Where the processes run: on real hosts, or simulated, as actors of one "
                                      "program in virtual time, which is the same at every call."},
                         &RunRequest::cluster, "cluster", {ClusterKind::kReal, ClusterKind::kSimulated}));
  table.push_back(
      only(choice({.group = kGroup,
                   .name = "network",
                   .placeholder = "MODEL",
                   .sentence = "How messages share links: one after the other (fifo), in frames that take "
                               "turns (frames), or side by side at max-min fair rates (fluid)."},
                  &RunRequest::network, "network", {NetworkModel::kFifo, NetworkModel::kFrames, NetworkModel::kFluid}),
           conditions::kSimulated));
  table.push_back(only(fabric(), conditions::kSimulated));
  table.push_back(only(inside(), conditions::kSimulatedHosts));
  table.push_back(only(compute(), conditions::kSimulated));
}

}  // namespace syncopate::experiments
