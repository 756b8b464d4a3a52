#include "experiments/cluster/process/local_host.h"

#include <utility>

#include "experiments/cluster/process/data_of.h"
#include "experiments/cluster/process/link_store.h"

namespace syncopate::experiments {

Result<std::shared_ptr<const worker::DatasetPair>> LocalHost::open_data(const RunSettings& config) {
  SYNCOPATE_ASSIGN_OR_RETURN(worker::DatasetPair data, open_data_of(config));
  return std::make_shared<const worker::DatasetPair>(std::move(data));
}

Result<std::unique_ptr<Transport>> LocalHost::connect(const ResolvedRun& config, const TransportOptions& options,
                                                      Rendezvous& rendezvous, TimePoint deadline) {
  SYNCOPATE_ASSIGN_OR_RETURN(syncopate::TransportKind kind, parse_transport_kind(name_of(config.transport)));
  return make_transport(kind, options, rendezvous, deadline);
}

std::optional<ProcessHost::KnownLinks> LocalHost::known_links(const std::string& wire) {
  const std::optional<allreduce::GroupLinks> links = LinkStore::of_user().find(wire);
  if (!links) return std::nullopt;
  return KnownLinks{.links = *links, .source = "measured in an earlier run"};
}

Status LocalHost::keep_links(const std::string& wire, const allreduce::GroupLinks& links) {
  return LinkStore::of_user().keep(wire, links);
}

std::shared_ptr<ProcessLink> LocalHost::make_link(const ResolvedRun& config) {
  const std::lock_guard lock(mutex_);
  const std::optional<LinkShape> shape = emulated_link_of(config);
  if (shape && link_ == nullptr) link_ = std::make_shared<ProcessLink>(*shape);
  return link_;
}

}  // namespace syncopate::experiments
