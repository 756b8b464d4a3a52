#include "experiments/process/replica_group.h"

#include "allreduce/allreduce_strategy.h"
#include "allreduce/device_allreduce_strategy.h"
#include "allreduce/model_averaging_strategy.h"
#include "common/device/staged_strategy.h"
#include "experiments/process/data_endpoint.h"
#include "experiments/process/host_collective.h"
#include "ps/local_steps_strategy.h"
#include "ps/ps_strategy.h"
#include "worker/device_local_strategy.h"
#include "worker/local_strategy.h"

namespace syncopate::experiments {

namespace {

Duration timeout_of(const RunConfig& config) { return from_seconds(config.timeout_seconds); }

ps::LocalStepsOptions local_steps_of(const RunConfig& config) {
  ps::LocalStepsOptions options{.optimizer = optimizer_of(config), .period = config.consistency.period()};
  if (config.consistency.kind() == ps::Consistency::Kind::kEasgd) {
    options.elastic_rate = static_cast<float>(config.elastic_alpha);
  }
  return options;
}

}  // namespace

Result<std::unique_ptr<ReplicaGroup>> ReplicaGroup::connect(const RoleContext& context, Device* device,
                                                            const Clock& clock) {
  const RunConfig& config = context.config;
  const Duration timeout = timeout_of(config);
  auto group = std::make_unique<ReplicaGroup>();
  if (config.mode == Mode::kLocal && device != nullptr) {
    group->strategy_ = std::make_unique<worker::DeviceLocalStrategy>(optimizer_of(config), *device, clock, timeout);
    return group;
  }
  if (config.mode == Mode::kLocal) {
    group->strategy_ = std::make_unique<worker::LocalStrategy>(optimizer_of(config), clock, config.seed);
    return group;
  }
  if (config.mode == Mode::kAllreduce && config.collective == CollectiveKind::kNccl) {
    SYNCOPATE_RETURN_IF_ERROR(group->connect_nccl(context, *device, clock));
    return group;
  }
  SYNCOPATE_RETURN_IF_ERROR(config.mode == Mode::kPs ? group->connect_ps(context, clock)
                                                     : group->connect_allreduce(context, clock));
  if (device != nullptr) {
    group->host_strategy_ = std::move(group->strategy_);
    group->strategy_ = std::make_unique<StagedStrategy>(*group->host_strategy_, *device, clock, timeout);
  }
  return group;
}

Status ReplicaGroup::connect_ps(const RoleContext& context, const Clock& clock) {
  const ps::PsGroup members = ps_group_of(context.config);
  Result<std::unique_ptr<Transport>> transport =
      connect_endpoint(context, context.rank, members.size(), make_link(context.config), clock);
  if (!transport.ok()) return transport.status();
  transport_ = std::move(*transport);
  const RunConfig& config = context.config;
  const ps::PsStrategyOptions options{.group = members,
                                      .sharding = sharding_of(config),
                                      .push_order = may_order_pushes(config) ? config.push_order : ps::PushOrder::kFifo,
                                      .pipeline_depth = may_run_ahead(config) ? config.pipeline_depth : 0,
                                      .overlap_forward = may_overlap_forward(config) && config.overlap_forward,
                                      .compression = compression_of(config),
                                      .timeout = timeout_of(config)};
  auto servers = std::make_unique<ps::PsStrategy>(options, *transport_, clock, &context.activity);
  servers_ = servers.get();
  strategy_ = std::move(servers);
  if (config.consistency.pushes_weights()) {
    strategy_ = std::make_unique<ps::LocalStepsStrategy>(local_steps_of(config), std::move(strategy_), clock);
  }
  return {};
}

Status ReplicaGroup::connect_allreduce(const RoleContext& context, const Clock& clock) {
  const RunConfig& config = context.config;
  Result<HostCollective> connected = connect_host_collective(context, clock);
  if (!connected.ok()) return connected.status();
  transport_ = std::move(connected->transport);
  collective_ = std::move(connected->collective);
  description_ = std::move(connected->description);
  if (averages_weights(config)) {
    allreduce::ModelAveragingOptions options{
        .optimizer = optimizer_of(config), .period = config.sync_every, .timeout = timeout_of(config)};
    options.activity = &activity_;
    if (config.gossip) options.gossip_seed = config.seed;
    strategy_ = std::make_unique<allreduce::ModelAveragingStrategy>(*collective_, options, clock);
    return {};
  }
  allreduce::AllReduceOptions options{.optimizer = optimizer_of(config),
                                      .bucket_bytes = static_cast<std::size_t>(config.bucket_bytes),
                                      .overlap = config.overlap,
                                      .codec = config.compress,
                                      .seed = config.seed,
                                      .sparse_exchange = config.sparse_exchange,
                                      .timeout = timeout_of(config),
                                      .activity = &activity_};
  if (context.rank == 0) {
    options.on_exchange_found = [&control = context.control](const std::string& finding) {
      control.tell("sparse exchange", finding);
    };
    options.on_search_end = [&control = context.control](const std::string& finding) {
      control.tell("bucket size", finding);
    };
  }
  strategy_ = allreduce::make_allreduce_strategy(*collective_, options, clock);
  return {};
}

Status ReplicaGroup::connect_nccl(const RoleContext& context, Device& device, const Clock& clock) {
  const RunConfig& config = context.config;
  Result<std::unique_ptr<allreduce::DeviceCollective>> collective = context.accelerator->connect_collective(
      context.rank, config.workers, device, context.control, clock, timeout_of(config));
  if (!collective.ok()) return collective.status();
  device_collective_ = std::move(*collective);
  const allreduce::DeviceAllReduceOptions options{.optimizer = optimizer_of(config),
                                                  .bucket_bytes = static_cast<std::size_t>(config.bucket_bytes),
                                                  .overlap = config.overlap,
                                                  .timeout = timeout_of(config)};
  strategy_ = std::make_unique<allreduce::DeviceAllReduceStrategy>(*device_collective_, device, context.control,
                                                                   options, clock);
  return {};
}

allreduce::CollectiveState ReplicaGroup::collective_state() const {
  allreduce::CollectiveState state = activity_.state(SteadyClock().now());
  if (collective_) state.waits_for = collective_->waiting_for();
  return state;
}

void ReplicaGroup::interrupt() {
  if (transport_) transport_->interrupt();
  if (collective_) collective_->interrupt();
  if (device_collective_) device_collective_->interrupt();
}

std::int64_t ReplicaGroup::dropped() const {
  // A collective that stands on a transport counts what that does.
  const TransportCounters counters = collective_  ? collective_->counters()
                                     : transport_ ? transport_->counters()
                                                  : TransportCounters();
  return not_let_through(counters) + (servers_ != nullptr ? servers_->dropped() : 0);
}

ps::PsGroup ps_group_of(const RunConfig& config) {
  return {.workers = config.workers, .servers = config.servers, .shards_per_server = config.shards_per_server};
}

}  // namespace syncopate::experiments
