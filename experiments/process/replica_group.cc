#include "experiments/process/replica_group.h"

#include "allreduce/allreduce_strategy.h"
#include "allreduce/mpi_collective.h"
#include "ps/ps_strategy.h"
#include "worker/local_strategy.h"

namespace syncopate::experiments {

Result<std::unique_ptr<ReplicaGroup>> ReplicaGroup::connect(const RunConfig& config, const std::string& run_id,
                                                            int rank, Rendezvous& rendezvous, const Clock& clock,
                                                            Activity& activity) {
  auto group = std::make_unique<ReplicaGroup>();
  const Duration timeout = from_seconds(config.timeout_seconds);

  if (config.mode == Mode::kLocal) {
    group->strategy_ = std::make_unique<worker::LocalStrategy>(optimizer_of(config), clock);
    return group;
  }

  if (config.mode == Mode::kPs) {
    const ps::PsGroup members = ps_group_of(config);
    Result<std::unique_ptr<Transport>> transport =
        connect_endpoint(config, run_id, rank, members.size(), rendezvous, clock);
    if (!transport.ok()) return transport.status();
    group->transport_ = std::move(*transport);
    group->strategy_ = std::make_unique<ps::PsStrategy>(ps::PsStrategyOptions{.group = members, .timeout = timeout},
                                                        *group->transport_, clock, &activity);
    return group;
  }

  if (config.collective == CollectiveKind::kMpi) {
    Result<std::unique_ptr<allreduce::Collective>> mpi = allreduce::make_mpi_collective(rank, config.workers);
    if (!mpi.ok()) return mpi.status();
    group->collective_ = std::move(*mpi);
  } else {
    Result<std::unique_ptr<Transport>> transport =
        connect_endpoint(config, run_id, rank, config.workers, rendezvous, clock);
    if (!transport.ok()) return transport.status();
    group->transport_ = std::move(*transport);
    group->collective_ = allreduce::make_ring_collective(*group->transport_);
  }
  const allreduce::AllReduceOptions options{.optimizer = optimizer_of(config),
                                            .bucket_bytes = static_cast<std::size_t>(config.bucket_bytes),
                                            .timeout = timeout};
  group->strategy_ = allreduce::make_allreduce_strategy(*group->collective_, options, clock);
  return group;
}

void ReplicaGroup::interrupt() {
  if (transport_) transport_->interrupt();
}

ps::PsGroup ps_group_of(const RunConfig& config) {
  return {.workers = config.workers, .servers = config.servers, .shards_per_server = config.shards_per_server};
}

Result<std::unique_ptr<Transport>> connect_endpoint(const RunConfig& config, const std::string& run_id, int rank,
                                                    int size, Rendezvous& rendezvous, const Clock& clock) {
  Result<syncopate::TransportKind> kind = parse_transport_kind(name_of(config.transport));
  if (!kind.ok()) return kind.status();
  const TransportOptions options{.run_id = run_id, .group = "data", .rank = rank, .size = size};
  return make_transport(*kind, options, rendezvous, clock.now() + from_seconds(config.timeout_seconds));
}

}  // namespace syncopate::experiments
