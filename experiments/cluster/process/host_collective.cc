#include "experiments/cluster/process/host_collective.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "allreduce/collective/direct_collective.h"
#include "allreduce/collective/link_measurement.h"
#include "allreduce/collective/mpi_collective.h"
#include "allreduce/collective/schedule_collective.h"
#include "allreduce/collective/two_level_collective.h"
#include "common/text/log.h"
#include "experiments/cluster/process/data_endpoint.h"
#include "experiments/cluster/process/inside_host.h"
#include "experiments/cluster/process/wire_measurement.h"

namespace syncopate::experiments {
namespace {

// Returns the name of everything that the speed of a run's network depends on.
std::string wire_of(const ResolvedRun& config, int ranks) {
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  const std::string shaped = config.shape ? " shaped to " + config.shape->to_string() : "";
  const std::string fabric = config.fabric == FabricChoice() ? "" : " in " + config.fabric.to_string();
  return fmt::format("{}{}{}, {} ranks, from {} on {}", name_of(config.transport), shaped, fabric, ranks, name,
                     to_text(hosts_of(config)));
}

// Returns, for example, "doubling up to 64 KiB, then direct". `bytes_for_each` is as in ProcessHost::KnownLinks.
std::string describe_choices(const allreduce::ScheduleCollective& collective, double bytes_for_each) {
  std::string text;
  const auto chosen = [&](std::size_t kib) {
    return collective.kind_for(static_cast<std::size_t>(static_cast<double>(kib * 1024) / bytes_for_each));
  };
  for (std::size_t kib = 1; kib <= std::size_t{1} << 20; kib *= 2) {
    const bool is_last = kib == std::size_t{1} << 20;
    if (!is_last && chosen(kib) == chosen(2 * kib)) continue;
    text += allreduce::name_of(chosen(kib));
    if (!is_last) text += fmt::format(" up to {} KiB, then ", kib);
  }
  return text;
}

// Where the messages that were timed took as long whatever their length, no rate is told: any would be made up.
std::string describe_link(const allreduce::LinkModel& link, double bytes_for_each) {
  if (link.seconds_per_byte <= 0) return fmt::format("{:.1f} us a message of any length", link.latency * 1e6);
  return fmt::format("{:.1f} us a message and {:.3g} GB/s", link.latency * 1e6,
                     1e-9 * bytes_for_each / link.seconds_per_byte);
}

// Returns, for example, "3.1 us a message and 1.2 GB/s inside a host, 60.0 us a message and 0.118 GB/s between 2 hosts
// of 4 workers"; on one host, or where none has several workers, what a message takes, alone.
std::string describe_links(const allreduce::GroupLinks& links, const allreduce::RanksByHost& hosts,
                           double bytes_for_each) {
  const auto by_size = [](const std::vector<int>& ranks) { return ranks.size(); };
  const std::size_t least = std::ranges::min(hosts, {}, by_size).size();
  const std::size_t most = std::ranges::max(hosts, {}, by_size).size();
  if (hosts.size() == 1) return describe_link(links.inside, bytes_for_each);
  if (most == 1) return describe_link(links.across, bytes_for_each);
  return fmt::format("{} inside a host, {} between {} hosts of {} workers", describe_link(links.inside, bytes_for_each),
                     describe_link(links.across, bytes_for_each), hosts.size(),
                     least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most));
}

// Chooses by the speed of what connects the workers, which is kept from an earlier run, or measured now and kept. On
// rank 0 notes what was found. `memory` connects the workers of this host; it may be null.
Status choose_by_size(const RoleContext& context, allreduce::ScheduleCollective& collective,
                      allreduce::DirectCollective* memory, const Clock& clock, HostCollective& connected) {
  const std::string wire = wire_of(context.config, collective.size());
  const std::optional<ProcessHost::KnownLinks> known =
      collective.rank() == 0 && !context.config.measure_wire ? context.host.known_links(wire) : std::nullopt;
  const Result<allreduce::GroupLinks> links =
      allreduce::agree_on_links(collective, memory, known ? std::optional(known->links) : std::nullopt, clock,
                                clock.now() + from_seconds(context.config.timeout_seconds));
  if (!links.ok()) return links.status().in("measuring the wire's speed");
  collective.choose_by(*links);
  connected.across = links->across;
  if (collective.rank() != 0) return {};
  if (!known) {
    const Status kept = context.host.keep_links(wire, *links);
    if (!kept.ok()) log_warning("the wire's speed cannot be kept and will be measured again: {}", kept.message());
  }
  const double bytes_for_each = known ? known->bytes_for_each : 1;
  connected.description =
      fmt::format("{} ({}): {}", describe_links(*links, collective.ranks_by_host(), bytes_for_each),
                  known ? known->source : "measured now", describe_choices(collective, bytes_for_each));
  if (!known) connected.wire = link_between_hosts(links->across).to_string();
  return {};
}

template <typename Made>
Result<HostCollective> without_transport(Result<std::unique_ptr<Made>> collective) {
  if (!collective.ok()) return collective.status();
  HostCollective connected;
  connected.collective = std::move(*collective);
  return connected;
}

}  // namespace

Result<HostCollective> connect_host_collective(const RoleContext& context, const MembershipEpoch& membership,
                                               const std::string& group, const std::shared_ptr<ProcessLink>& link,
                                               const Clock& clock) {
  const ResolvedRun& config = context.config;
  const std::vector<int>& workers = membership.workers;
  const RankAssignment assignment{.membership_epoch = membership.number,
                                  .group = group,
                                  .rank = static_cast<int>(std::ranges::find(workers, context.rank) - workers.begin()),
                                  .size = static_cast<int>(workers.size())};
  // The ranks of a part of the model's workers are not the run's.
  const std::vector<int> called = divides_model(config) ? workers : std::vector<int>();
  if (config.collective == CollectiveKind::kMpi) {
    return without_transport(allreduce::make_mpi_collective(context.rank, config.workers, context.control.patience()));
  }
  if (config.collective == CollectiveKind::kDirect && config.transport == TransportKind::kShm) {
    return without_transport(allreduce::make_direct_collective(endpoint_options(context, assignment), context.control,
                                                               clock.now() + from_seconds(config.timeout_seconds),
                                                               called));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, connect_endpoint(context, assignment, link, clock));
  // A trace has what a rank does with each part.
  allreduce::SchedulePlayer* const player =
      context.tracer != nullptr ? nullptr
                                : context.host.schedule_player(config, endpoint_options(context, assignment).group);
  const allreduce::ScheduleOptions options{.kind = schedule_kind_of(config).value_or(allreduce::ScheduleKind::kRing),
                                           .segment_bytes = static_cast<std::size_t>(config.segment_bytes),
                                           .ranks_by_host = ranks_by_host(config, workers),
                                           .clock = &clock,
                                           .tracer = context.tracer,
                                           .player = player,
                                           .called = called};
  HostCollective connected;
  if (may_sum_on_two_levels(config)) {
    SYNCOPATE_ASSIGN_OR_RETURN(connected.inside,
                               connect_inside_host(context, assignment, options.ranks_by_host,
                                                   clock.now() + from_seconds(config.timeout_seconds)));
  }
  connected.transport = std::move(transport);
  if (gossips_asynchronously(config)) connected.channels = std::make_unique<TransportChannels>(*connected.transport, 2);
  Transport& wire = connected.channels ? connected.channels->channel(kCollectiveChannel) : *connected.transport;
  std::unique_ptr<allreduce::ScheduleCollective> collective = allreduce::make_schedule_collective(wire, options);
  if (config.collective == CollectiveKind::kBySize) {
    SYNCOPATE_RETURN_IF_ERROR(choose_by_size(context, *collective, connected.inside.get(), clock, connected));
  }
  if (connected.inside) {
    connected.collective = allreduce::make_two_level_collective(*connected.inside, std::move(collective));
  } else {
    connected.collective = std::move(collective);
  }
  return connected;
}

}  // namespace syncopate::experiments
