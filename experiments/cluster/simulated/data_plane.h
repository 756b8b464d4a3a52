// DataPlane: what the processes of a simulated cluster share besides the coordinator: the wire, and the data that they
// read.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/cluster/plan/job_plan.h"
#include "experiments/cluster/process/process_host.h"
#include "experiments/cluster/simulated/simulated_memory.h"
#include "experiments/cluster/simulated/simulated_schedules.h"
#include "simulation/simulated_wire.h"
#include "simulation/world.h"

namespace syncopate::experiments {

class DataPlane {
 public:
  // Processes lie on the run's hosts as planned, or, if it names none, on a host of their own each, with what is within
  // them. The run's shape is that of every host's link. A byte of a payload counts as `scale` bytes.
  DataPlane(simulation::World& world, const ResolvedRun& config, const JobPlan& plan, std::int64_t scale);

  // Returns the endpoint of a member of a group, once all have asked for theirs.
  Result<std::unique_ptr<Transport>> connect(std::size_t process, const TransportOptions& options,
                                             Rendezvous& rendezvous, TimePoint deadline);
  // Like connect(); the group's processes are of one host.
  Result<std::unique_ptr<allreduce::DirectCollective>> connect_memory(std::size_t process,
                                                                      const TransportOptions& options,
                                                                      Rendezvous& rendezvous, TimePoint deadline,
                                                                      std::vector<int> called);
  // Returns what carries out the schedules of a connected group, in which a byte takes `sum_time` seconds to add; null
  // where somebody may be lost, who would then have to be told of by messages.
  SimulatedSchedules* schedules_of(const ResolvedRun& config, double sum_time, const std::string& group);
  // The process is gone, in whatever way: the peers of what it has not closed are told.
  void end_process(std::size_t process) { wire_.end_process(process); }
  // What messages of workers take inside a host, where all of its workers send at once, and between hosts.
  ProcessHost::KnownLinks links() const;
  // Opened by the first that asks.
  Result<std::shared_ptr<const worker::DatasetPair>> open_data(const RunSettings& config);

 private:
  // The members that have asked for their endpoints, and what they have not fetched yet.
  struct Group {
    std::vector<int> hosts;
    std::vector<std::size_t> processes;
    std::vector<std::unique_ptr<Transport>> endpoints;
    std::size_t number = 0;                         // the wire's, once connected
    std::unique_ptr<SimulatedSchedules> schedules;  // null until they are asked for
    std::shared_ptr<ArenasOfRanks> arenas;          // null until memory is asked for
  };

  std::optional<SimulatedSchedules::RingPrices> ring_prices(const ResolvedRun& config, double sum_time,
                                                            const Group& group) const;

  simulation::World& world_;
  const std::vector<int> host_of_;  // by process
  const int workers_a_host_;        // of the host that has most
  const std::string source_;        // of what is known of the links: the nominal one
  const simulation::Fabric fabric_;
  const std::int64_t scale_;
  simulation::SimulatedWire wire_;
  std::map<std::string, Group> groups_;
  std::shared_ptr<const worker::DatasetPair> data_;
};

}  // namespace syncopate::experiments
