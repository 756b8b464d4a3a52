#include "experiments/cluster/process/replica_group.h"

#include <fmt/format.h>

#include <algorithm>

#include "allreduce/strategy/allreduce_strategy.h"
#include "allreduce/strategy/device_allreduce_strategy.h"
#include "allreduce/strategy/model_averaging_strategy.h"
#include "allreduce/strategy/sharded_strategy.h"
#include "common/device/staged_strategy.h"
#include "common/tables/split_strategy.h"
#include "common/text/log.h"
#include "common/thread_failure.h"
#include "common/transport/members_transport.h"
#include "experiments/cluster/process/aggregating_strategy.h"
#include "experiments/cluster/process/data_endpoint.h"
#include "experiments/cluster/process/exchange_ground.h"
#include "experiments/cluster/process/host_collective.h"
#include "experiments/cluster/process/inside_host.h"
#include "experiments/config/rules/survival_rules.h"
#include "ps/client/local_steps_strategy.h"
#include "ps/client/ps_strategy.h"
#include "worker/device_local_strategy.h"
#include "worker/local_strategy.h"
#include "worker/pipeline/pipelined_strategy.h"
#include "worker/tensor/tensor_strategy.h"

namespace syncopate::experiments {

namespace {

Duration timeout_of(const ResolvedRun& config) { return from_seconds(config.timeout_seconds); }

// Returns how long an exchange with those of the same part of the model may take. A worker that waits for another stage
// of its pipeline says which, before those say anything that wait for this worker.
Duration exchange_timeout_of(const ResolvedRun& config) {
  return is_pipelined(config) ? timeout_of(config) * 5 / 4 : timeout_of(config);
}

ps::LocalStepsOptions local_steps_of(const RoleContext& context) {
  const ResolvedRun& config = context.config;
  ps::LocalStepsOptions options{.optimizer = optimizer_of(config), .period = config.consistency.period()};
  options.tracer = context.tracer;
  options.has_quorum = !consistency_of(config).quorum().is_all();
  if (config.consistency.is_elastic()) {
    options.elastic_rate = static_cast<float>(config.elastic_alpha);
  }
  return options;
}

AggregationOptions aggregation_of(const RoleContext& context) {
  return {.shards = shards_of(context.config),
          .sharding = sharding_of(context.config),
          .timeout = timeout_of(context.config),
          .threads = &context.host.threads()};
}

}  // namespace

Result<std::unique_ptr<ReplicaGroup>> ReplicaGroup::connect(const RoleContext& context,
                                                            const MembershipEpoch& membership, Device* device,
                                                            const Clock& clock, const ModelPart& part,
                                                            const std::vector<double>& rows) {
  const ResolvedRun& config = context.config;
  const Duration timeout = timeout_of(config);
  auto group = std::make_unique<ReplicaGroup>(clock);
  group->workers_ = membership.workers;
  group->part_ = part;
  group->activity_.trace_to(context.tracer);
  if (!is_distributed(config) && device != nullptr) {
    group->strategy_ = std::make_unique<worker::DeviceLocalStrategy>(
        optimizer_of(config), *device, worker::element_type_of(config.precision), clock, timeout);
    return group;
  }
  if (!is_distributed(config)) {
    group->strategy_ = std::make_unique<worker::LocalStrategy>(optimizer_of(config), clock, config.seed, context.tracer,
                                                               config.on_nan == OnNan::kSkip);
    return group;
  }
  if (sums_among_workers(config) && is_nccl(config.collective)) {
    SYNCOPATE_RETURN_IF_ERROR(group->connect_nccl(context, *device, clock));
    return group;
  }
  const std::shared_ptr<ProcessLink> link = context.host.make_link(config);
  if (divides_model(config)) {
    SYNCOPATE_RETURN_IF_ERROR(group->connect_part(context, membership, link, clock));
  } else if (is_hybrid(config)) {
    SYNCOPATE_RETURN_IF_ERROR(group->connect_hybrid(context, membership, link, clock, rows));
  } else if (has_servers(config)) {
    SYNCOPATE_RETURN_IF_ERROR(group->connect_ps(context, membership, link, clock));
  } else {
    SYNCOPATE_RETURN_IF_ERROR(group->connect_allreduce(context, membership, "data", link, clock));
  }
  if (device != nullptr) {
    group->host_strategy_ = std::move(group->strategy_);
    group->strategy_ = std::make_unique<StagedStrategy>(*group->host_strategy_, *device,
                                                        worker::element_type_of(config.precision), clock, timeout);
  }
  return group;
}

ReplicaGroup::~ReplicaGroup() {
  if (part_.stage != nullptr) part_.stage->connect(nullptr);
  if (part_.layers != nullptr) part_.layers->sums().links = nullptr;
}

Status ReplicaGroup::connect_part(const RoleContext& context, const MembershipEpoch& membership,
                                  const std::shared_ptr<ProcessLink>& link, const Clock& clock) {
  const ResolvedRun& config = context.config;
  const ModelPlace place = model_place(config, context.rank);
  const MembershipEpoch same_part = of_part(config, membership, place);
  workers_ = same_part.workers;
  SYNCOPATE_RETURN_IF_ERROR(
      has_servers(config)
          ? connect_ps(context, same_part, link, clock)
          : connect_allreduce(context, same_part, fmt::format("replicas-{}-{}", place.stage, place.part), link, clock));
  if (part_.stage != nullptr) SYNCOPATE_RETURN_IF_ERROR(connect_stages(context, membership, link, clock));
  if (part_.layers != nullptr) SYNCOPATE_RETURN_IF_ERROR(connect_layer_parts(context, membership, link, clock));
  return {};
}

Status ReplicaGroup::connect_layer_parts(const RoleContext& context, const MembershipEpoch& membership,
                                         const std::shared_ptr<ProcessLink>& link, const Clock& clock) {
  const ResolvedRun& config = context.config;
  const ModelPlace place = model_place(config, context.rank);
  MembershipEpoch parts = membership;
  std::erase_if(parts.workers, [&](int worker) {
    const ModelPlace other = model_place(config, worker);
    return other.stage != place.stage || other.replica != place.replica;
  });
  SYNCOPATE_ASSIGN_OR_RETURN(
      HostCollective connected,
      connect_host_collective(context, parts, fmt::format("parts-{}-{}", place.stage, place.replica), link, clock));
  const std::size_t largest = std::max(part_.layers->sums().largest, worker::TensorLinks::kPiece);
  SYNCOPATE_ASSIGN_OR_RETURN(to_layer_parts_,
                             TensorCollective::make(std::move(connected), largest, timeout_of(config), clock));
  tensor_links_ = std::make_unique<worker::TensorLinks>(*to_layer_parts_, clock, context.tracer);
  strategy_ = worker::make_tensor_strategy(std::move(strategy_), part_.layers->split(),
                                           place.stage == 0 && place.replica == 0, *tensor_links_);
  part_.layers->sums().links = tensor_links_.get();
  return {};
}

Status ReplicaGroup::connect_stages(const RoleContext& context, const MembershipEpoch& membership,
                                    const std::shared_ptr<ProcessLink>& link, const Clock& clock) {
  const ResolvedRun& config = context.config;
  const ModelPlace place = model_place(config, context.rank);
  std::vector<int> stages;  // the pipeline's workers
  for (int stage = 0; stage < config.pipeline; ++stage) {
    stages.push_back(worker_at(config, {.stage = stage, .part = place.part, .replica = place.replica}));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(to_stages_,
                             connect_endpoint(context,
                                              {.membership_epoch = membership.number,
                                               .group = fmt::format("pipeline-{}-{}", place.replica, place.part),
                                               .rank = place.stage,
                                               .size = config.pipeline},
                                              link, clock));
  links_ = std::make_unique<worker::StageLinks>(
      *to_stages_,
      worker::StageLinksOptions{.workers = stages, .timeout = timeout_of(config), .tracer = context.tracer}, clock);
  strategy_ = worker::make_pipelined_strategy(std::move(strategy_),
                                              {.place = part_.stage->place(),
                                               .cut = part_.stage->cut(),
                                               .gathers = place.replica == 0,
                                               .gathers_behind_leaving = has_servers(config),
                                               .steps = part_.stage->ends_after()},
                                              *links_);
  part_.stage->connect(links_.get());
  return {};
}

Status ReplicaGroup::connect_hybrid(const RoleContext& context, const MembershipEpoch& membership,
                                    const std::shared_ptr<ProcessLink>& link, const Clock& clock,
                                    const std::vector<double>& rows) {
  // They are in a group with the servers besides.
  SYNCOPATE_RETURN_IF_ERROR(connect_allreduce(context, membership, "workers", link, clock));
  std::unique_ptr<SyncStrategy> workers = std::move(strategy_);
  SYNCOPATE_RETURN_IF_ERROR(connect_ps(context, membership, link, clock));
  SplitStrategy::Choose choose = choice_by_kind;
  if (chooses_exchanges(context.config)) {
    choose = [&context, rows, ground = exchange_ground(context.config, across_),
              tells = collective_->rank() == 0](const ParamLayout& layout) {
      const ExchangeDemand demand = demand_of(layout, rows);
      const ExchangeChoice choice = choose_exchanges(ground, demand);
      if (tells) context.control.tell("exchange", describe(choice, layout, ground, demand));
      return choice;
    };
  }
  strategy_ = std::make_unique<SplitStrategy>(std::move(workers), std::move(strategy_), choose);
  return {};
}

Status ReplicaGroup::connect_ps(const RoleContext& context, const MembershipEpoch& membership,
                                const std::shared_ptr<ProcessLink>& link, const Clock& clock) {
  const ResolvedRun& config = context.config;
  if (aggregates_on_hosts(config)) {
    SYNCOPATE_RETURN_IF_ERROR(meet_host(context, membership, clock));
    if (inside_host_->rank() != 0) {
      strategy_ = std::make_unique<AggregatingStrategy>(aggregation_of(context), *inside_host_, nullptr, clock,
                                                        &context.activity);
      return {};
    }
  }
  const ps::PsGroup members = ps_group_of(config, model_place(config, context.rank).stage);
  SYNCOPATE_ASSIGN_OR_RETURN(to_servers_, connect_member(context, members, membership, context.rank, link, clock));
  ps::PsStrategyOptions options{.group = members,
                                .sharding = sharding_of(config),
                                .push_order = may_order_pushes(config) ? config.push_order : ps::PushOrder::kFifo,
                                .pipeline_depth = may_run_ahead(config) ? config.pipeline_depth : 0,
                                .overlap_forward = may_overlap_forward(config) && config.overlap_forward,
                                .compression = compression_of(config),
                                .timeout = exchange_timeout_of(config),
                                .chief = membership.workers.front(),
                                .goes_on = goes_on(membership),
                                .heads = heads_of(members, membership),
                                .undoes_pushes = recovery_of(config).regroups(),
                                .tracer = context.tracer};
  if (inside_host_) options.make_arena = [this](std::size_t elements) { return inside_host_->allocate(elements); };
  auto servers = std::make_unique<ps::PsStrategy>(options, *to_servers_, clock, &context.activity);
  servers_ = servers.get();
  if (inside_host_) {
    strategy_ = std::make_unique<AggregatingStrategy>(aggregation_of(context), *inside_host_, std::move(servers), clock,
                                                      &context.activity);
  } else if (config.consistency.pushes_weights()) {
    strategy_ =
        std::make_unique<ps::LocalStepsStrategy>(local_steps_of(context), std::move(servers), clock, context.rank);
  } else {
    strategy_ = std::move(servers);
  }
  return {};
}

Status ReplicaGroup::meet_host(const RoleContext& context, const MembershipEpoch& membership, const Clock& clock) {
  const std::vector<int>& workers = membership.workers;
  const RankAssignment assignment{.membership_epoch = membership.number,
                                  .rank = static_cast<int>(std::ranges::find(workers, context.rank) - workers.begin()),
                                  .size = static_cast<int>(workers.size())};
  SYNCOPATE_ASSIGN_OR_RETURN(inside_host_,
                             connect_inside_host(context, assignment, ranks_by_host(context.config, workers),
                                                 clock.now() + timeout_of(context.config)));
  return {};
}

Status ReplicaGroup::connect_allreduce(const RoleContext& context, const MembershipEpoch& membership,
                                       const std::string& group, const std::shared_ptr<ProcessLink>& link,
                                       const Clock& clock) {
  const ResolvedRun& config = context.config;
  SYNCOPATE_ASSIGN_OR_RETURN(HostCollective connected,
                             connect_host_collective(context, membership, group, link, clock));
  inside_host_ = std::move(connected.inside);
  transport_ = std::move(connected.transport);
  channels_ = std::move(connected.channels);
  collective_ = std::move(connected.collective);
  description_ = std::move(connected.description);
  wire_ = std::move(connected.wire);
  across_ = connected.across;
  if (gossips_asynchronously(config)) {
    const allreduce::AsyncGossipOptions options{.optimizer = optimizer_of(config),
                                                .period = config.sync_every,
                                                .seed = config.seed,
                                                .timeout = timeout_of(config),
                                                .activity = &activity_,
                                                .progress = &context.activity,
                                                .threads = &context.host.threads()};
    auto gossip = std::make_unique<allreduce::AsyncGossipStrategy>(*collective_, channels_->channel(kMeetingsChannel),
                                                                   options, clock);
    meetings_ = gossip.get();
    strategy_ = std::move(gossip);
    return {};
  }
  if (averages_weights(config)) {
    allreduce::ModelAveragingOptions options{
        .optimizer = optimizer_of(config), .period = config.sync_every, .timeout = timeout_of(config)};
    options.activity = &activity_;
    if (config.gossip != Gossip::kOff) options.gossip_seed = config.seed;
    options.outer = outer_options_of(config);
    options.outer.threads = &context.host.threads();
    strategy_ = std::make_unique<allreduce::ModelAveragingStrategy>(*collective_, options, clock);
    return {};
  }
  if (shards_state(config)) {
    if (gathers_on_demand(config)) SYNCOPATE_RETURN_IF_ERROR(connect_on_demand(context, membership, link, clock));
    allreduce::ShardedOptions options{.optimizer = optimizer_of(config),
                                      .stage = static_cast<allreduce::ShardingStage>(config.stage),
                                      .bucket_bytes = static_cast<std::size_t>(*config.bucket_bytes),
                                      .passes = microbatches_of(config),
                                      .on_demand = {.asks = asks_.get(), .answers = answers_.get()},
                                      .overlap = config.overlap,
                                      .timeout = timeout_of(config),
                                      .activity = &activity_,
                                      .threads = &context.host.threads()};
    strategy_ = allreduce::make_sharded_strategy(*collective_, options, clock);
    return {};
  }
  allreduce::AllReduceOptions options{.optimizer = optimizer_of(config),
                                      .bucket_bytes = static_cast<std::size_t>(config.bucket_bytes.value_or(0)),
                                      .overlap = config.overlap,
                                      .codec = codec_of(config),
                                      .seed = config.seed,
                                      .sparse_exchange = config.sparse_exchange,
                                      .timeout = exchange_timeout_of(config),
                                      .workers = membership.workers,
                                      .elastic = config.elastic,
                                      .leaves_out = config.on_nan == OnNan::kSkip,
                                      .activity = &activity_,
                                      .threads = &context.host.threads()};
  options.on_going_on = [](const std::string& finding) { log_info("{}", finding); };
  if (collective_->rank() == 0) {
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

Status ReplicaGroup::connect_on_demand(const RoleContext& context, const MembershipEpoch& membership,
                                       const std::shared_ptr<ProcessLink>& link, const Clock& clock) {
  const std::vector<int>& workers = membership.workers;
  const int size = static_cast<int>(workers.size());
  const int asks = static_cast<int>(std::ranges::find(workers, context.rank) - workers.begin()), answers = size + asks;
  const auto connect = [&](int rank, int inside) {
    return connect_endpoint(
        context, {.membership_epoch = membership.number, .group = "on-demand", .rank = rank, .size = 2 * size}, link,
        clock, {inside});
  };
  // Each waits for all others.
  Result<std::unique_ptr<Transport>> answering = Status::internal("the endpoint that answers has not been connected");
  ThreadFailure failure;
  std::unique_ptr<Threads::Handle> other =
      context.host.threads().start("connecting", [&] { failure.carry([&] { answering = connect(answers, asks); }); });
  Result<std::unique_ptr<Transport>> asking = connect(asks, answers);
  other.reset();
  failure.rethrow();
  SYNCOPATE_ASSIGN_OR_RETURN(answers_, std::move(answering));
  SYNCOPATE_ASSIGN_OR_RETURN(asks_, std::move(asking));
  return {};
}

Status ReplicaGroup::connect_nccl(const RoleContext& context, Device& device, const Clock& clock) {
  const ResolvedRun& config = context.config;
  SYNCOPATE_ASSIGN_OR_RETURN(
      device_collective_, context.accelerator->connect_collective(context.rank, config.workers, device, context.control,
                                                                  clock, timeout_of(config)));
  const allreduce::DeviceAllReduceOptions options{
      .optimizer = optimizer_of(config),
      .bucket_bytes = static_cast<std::size_t>(config.bucket_bytes.value_or(0)),
      .element = worker::element_type_of(config.precision),
      .overlap = config.overlap,
      .timeout = timeout_of(config)};
  strategy_ = std::make_unique<allreduce::DeviceAllReduceStrategy>(*device_collective_, device, context.control,
                                                                   options, clock);
  return {};
}

allreduce::CollectiveState ReplicaGroup::collective_state() const {
  allreduce::CollectiveState state = activity_.state(clock_.now());
  const int waits_for = collective_ ? collective_->waiting_for() : -1;
  state.waits_for = waits_for < 0 ? -1 : workers_[static_cast<std::size_t>(waits_for)];
  return state;
}

void ReplicaGroup::interrupt() {
  if (to_servers_) to_servers_->interrupt();
  if (to_stages_) to_stages_->interrupt();
  if (to_layer_parts_) to_layer_parts_->interrupt();
  if (asks_) asks_->interrupt();
  if (answers_) answers_->interrupt();
  if (transport_) transport_->interrupt();
  if (inside_host_) inside_host_->interrupt();
  if (collective_) collective_->interrupt();
  if (device_collective_) device_collective_->interrupt();
}

std::int64_t ReplicaGroup::dropped() const {
  const auto rejected = [](const auto& by) { return by ? rejections(by->counters()) : 0; };
  // A collective has counted what its transport does, and one on two levels what the one inside the host does.
  const std::int64_t inside_host = collective_ ? 0 : rejected(inside_host_);
  return rejected(collective_) + rejected(to_servers_) + rejected(to_stages_) + rejected(to_layer_parts_) +
         rejected(asks_) + rejected(answers_) + inside_host + (links_ ? links_->dropped() : 0) +
         (servers_ != nullptr ? servers_->dropped() : 0) + (meetings_ != nullptr ? meetings_->dropped() : 0);
}

MembershipEpoch of_part(const ResolvedRun& config, MembershipEpoch membership, const ModelPlace& place) {
  std::erase_if(membership.workers, [&](int worker) {
    const ModelPlace other = model_place(config, worker);
    return other.stage != place.stage || other.part != place.part;
  });
  return membership;
}

ps::HostGroups host_groups_of(const ResolvedRun& config) {
  std::vector<int> workers_by_host;
  const std::vector<std::size_t> host_of = hosts_of_workers(hosts_of(config), config.workers);
  for (std::size_t worker = 0; worker < host_of.size(); ++worker) {
    if (worker == 0 || host_of[worker] != host_of[worker - 1]) workers_by_host.push_back(0);
    ++workers_by_host.back();
  }
  return {workers_by_host, aggregates_on_hosts(config)};
}

std::vector<int> pushers_of(const ResolvedRun& config, const MembershipEpoch& membership) {
  const ps::HostGroups hosts = host_groups_of(config);
  std::vector<int> pushers = membership.workers;
  std::erase_if(pushers, [&](int worker) { return hosts.pusher_for(worker) != worker; });
  return pushers;
}

std::vector<int> members_of(const ResolvedRun& config, const ps::PsGroup& group, const MembershipEpoch& membership) {
  const auto ranks_of = [&](int shard) {
    return membership.servers[static_cast<std::size_t>(group.server_of_shard(shard))];
  };
  std::vector<int> members = pushers_of(config, membership);
  for (int shard = 0; shard < group.shards(); ++shard) {
    if (ranks_of(shard).has_server) members.push_back(group.rank_of_shard(shard));
  }
  for (int shard = 0; shard < group.shards(); ++shard) {
    if (ranks_of(shard).has_standby) members.push_back(group.rank_of_standby(shard));
  }
  return members;
}

std::vector<int> heads_of(const ps::PsGroup& group, const MembershipEpoch& membership) {
  std::vector<int> heads;
  for (int shard = 0; shard < group.shards(); ++shard) {
    const ServerRanks& ranks = membership.servers[static_cast<std::size_t>(group.server_of_shard(shard))];
    heads.push_back(ranks.standby_leads ? group.rank_of_standby(shard) : group.rank_of_shard(shard));
  }
  return heads;
}

Result<std::unique_ptr<Transport>> connect_member(const RoleContext& context, const ps::PsGroup& group,
                                                  const MembershipEpoch& membership, int rank,
                                                  const std::shared_ptr<ProcessLink>& link, const Clock& clock) {
  std::vector<int> members = members_of(context.config, group, membership);
  const RankAssignment assignment{.membership_epoch = membership.number,
                                  .group = group.parts > 1 ? fmt::format("data-{}", group.part) : "data",
                                  .rank = static_cast<int>(std::ranges::find(members, rank) - members.begin()),
                                  .size = static_cast<int>(members.size())};
  std::vector<int> inside;  // ranks of the inner transport
  for (std::size_t i = 0; i < members.size() && is_colocated(context.config); ++i) {
    const int member = members[i];
    const int pair = group.is_worker(member) ? member : group.server_of_shard(group.shard_of_rank(member));
    if (pair == context.rank && member != rank) inside.push_back(static_cast<int>(i));
  }
  Result<std::unique_ptr<Transport>> transport = connect_endpoint(context, assignment, link, clock, std::move(inside));
  if (!transport.ok() || assignment.size == group.size()) return transport;
  return std::unique_ptr<Transport>(
      std::make_unique<MembersTransport>(std::move(*transport), std::move(members), group.size()));
}

}  // namespace syncopate::experiments
