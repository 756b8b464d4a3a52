#include "experiments/config/rules/aggregation_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "experiments/config/rules/table_rules.h"

namespace syncopate::experiments {
namespace {

bool has_host_of_several(const ResolvedRun& config) {
  const std::vector<std::size_t> host_of = hosts_of_workers(hosts_of(config), config.workers);
  return std::ranges::adjacent_find(host_of) != host_of.end();
}

bool is_simulated(const ResolvedRun& config) { return config.cluster == ClusterKind::kSimulated; }

bool impairs_links(const ResolvedRun& config) {
  const auto may = [&](LinkFault fault) { return config.faults.may(fault); };
  return may(LinkFault::kCut) || may(LinkFault::kDelay) || may(LinkFault::kDuplicate) || may(LinkFault::kReorder);
}

using Run = ResolvedRun;

// A kind of run that is refused; why, and what would be right.
struct Refusal {
  bool (*holds)(const Run&);
  std::string (*why)(const Run&);
};

const Refusal kRefusals[] = {
    {[](const Run& r) { return runs_command(r); },
     [](const Run&) -> std::string { return "a program of your own pushes by itself; leave it out"; }},
    {[](const Run& r) { return is_simulated(r) && r.hosts.empty(); },
     [](const Run&) -> std::string {
       return "every simulated worker has a host of its own; name hosts with several, as in --hosts=2x4";
     }},
    {[](const Run& r) { return is_simulated(r) ? r.hosts.size() == 1 : !exchanges_between_hosts(r); },
     [](const Run&) -> std::string {
       return "all workers are on one host, so that pushes cross no link; use several, as in --hosts=A:4,B:4 or "
              "--cluster=namespaces:2x4";
     }},
    {[](const Run& r) { return !has_host_of_several(r); },
     [](const Run& r) {
       return fmt::format("no host of {} has several of the {} workers; give hosts more slots, as in --hosts=A:4,B:4",
                          to_text(hosts_of(r)), r.workers);
     }},
    {[](const Run& r) { return r.device == DeviceKind::kCuda; },
     [](const Run&) -> std::string { return "sums in the host's memory on processors alone; use --device=cpu"; }},
    {[](const Run& r) { return r.launcher == LauncherKind::kMpirun; },
     [](const Run&) -> std::string { return "is not built for --launcher=mpirun; leave that out"; }},
    {[](const Run& r) { return r.backup_workers > 0; },
     [](const Run& r) {
       return fmt::format("a host's sum is of all its workers; leave --backup-workers={} out", r.backup_workers);
     }},
    {[](const Run& r) { return compresses(r); },
     [](const Run& r) {
       return fmt::format("sums are not compressed; leave --compress={} out", to_string(r.compress));
     }},
    {[](const Run& r) { return has_tables(r); },
     [](const Run&) -> std::string {
       return "rows of tables are pushed by each worker; use --embeddings=dense, or leave it out";
     }},
    {[](const Run& r) { return r.overlap_forward; },
     [](const Run&) -> std::string {
       return "a host's workers read weights when all have come; leave --overlap-forward out";
     }},
    {[](const Run& r) { return r.replicas > 0; },
     [](const Run& r) { return fmt::format("is not built for standbys; leave --replicas={} out", r.replicas); }},
    {[](const Run& r) { return r.respawn_seconds.has_value(); },
     [](const Run& r) {
       return fmt::format("a lost worker ends the run, since its host's sum needs it; leave --respawn={} out",
                          *r.respawn_seconds);
     }},
    {impairs_links,
     [](const Run&) -> std::string {
       return "most workers have no link that --fault could impair; use its kill and stop, or leave it out";
     }},
};

}  // namespace

Status validate_aggregation(const ResolvedRun& config) {
  if (!aggregates_on_hosts(config)) return {};
  for (const Refusal& refusal : kRefusals) {
    if (refusal.holds(config)) return Status::invalid_argument("--aggregation=host: " + refusal.why(config));
  }
  return {};
}

}  // namespace syncopate::experiments
