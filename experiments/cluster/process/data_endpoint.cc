#include "experiments/cluster/process/data_endpoint.h"

#include <fmt/format.h>

#include <utility>

#include "common/transport/cuttable_transport.h"
#include "common/transport/faulty_transport.h"
#include "common/transport/numbered_transport.h"
#include "common/transport/patient_transport.h"

namespace syncopate::experiments {

namespace {

// Wraps the transport in one that can inject the faults that the run may ask for.
std::unique_ptr<Transport> open_to_faults(std::unique_ptr<Transport> transport, const RoleContext& context,
                                          const RankAssignment& assignment) {
  const FaultSchedule& schedule = context.config.faults;
  const std::shared_ptr<const LinkFaults> faults = context.control.link_faults();
  const Clock& clock = context.host.clock();
  const std::uint64_t seed = context.config.seed + static_cast<std::uint64_t>(assignment.rank);
  if (schedule.may(LinkFault::kReorder)) {
    const auto plan = [faults](TimePoint now) { return reordering(*faults, now); };
    transport = std::make_unique<FaultyTransport>(std::move(transport), plan, seed, clock);
    transport = std::make_unique<NumberedTransport>(std::move(transport));
  }
  if (schedule.may(LinkFault::kDelay) || schedule.may(LinkFault::kDuplicate)) {
    const auto plan = [faults](TimePoint now) { return delays_and_duplicates(*faults, now); };
    transport = std::make_unique<FaultyTransport>(std::move(transport), plan, seed, clock);
  }
  if (schedule.may(LinkFault::kCut)) {
    transport = std::make_unique<CuttableTransport>(std::move(transport), faults, clock);
  }
  return transport;
}

}  // namespace

TransportOptions endpoint_options(const RoleContext& context, const RankAssignment& assignment) {
  return {.run_id = context.run_id,
          .group = fmt::format("{}@{}", assignment.group, assignment.membership_epoch),
          .rank = assignment.rank,
          .size = assignment.size,
          .host = context.sockets.address,
          .keys = context.sockets.keys,
          .encrypted = context.sockets.between_hosts,
          .connections = context.config.connections,
          .patience = context.control.patience()};
}

Result<std::unique_ptr<Transport>> connect_endpoint(const RoleContext& context, const RankAssignment& assignment,
                                                    const std::shared_ptr<ProcessLink>& link, const Clock& clock,
                                                    std::vector<int> inside) {
  SYNCOPATE_ASSIGN_OR_RETURN(
      std::unique_ptr<Transport> transport,
      context.host.connect(context.config, endpoint_options(context, assignment), context.control,
                           clock.now() + from_seconds(context.config.timeout_seconds)));
  transport = open_to_faults(std::move(transport), context, assignment);
  // This comes above those, so that a repeated message passes the emulated link once.
  if (link != nullptr) transport = std::make_unique<ShapedTransport>(std::move(transport), link, std::move(inside));
  return std::unique_ptr<Transport>(
      std::make_unique<PatientTransport>(std::move(transport), context.control.patience(), clock));
}

}  // namespace syncopate::experiments
