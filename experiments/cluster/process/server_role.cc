#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/os/core_wait.h"
#include "common/os/exhaustion.h"
#include "common/text/format.h"
#include "common/text/log.h"
#include "experiments/cluster/process/data_endpoint.h"
#include "experiments/cluster/process/membership_loop.h"
#include "experiments/cluster/process/replica_group.h"
#include "experiments/cluster/process/roles.h"
#include "experiments/cluster/process/shard_checkpoints.h"
#include "experiments/config/rules/survival_rules.h"
#include "ps/server/shard_server.h"

namespace syncopate::experiments {
namespace {

// The fraction of the timeout for which others may wait for a worker. A missing worker is then named and excluded
// before they pass their own deadlines, and after it would have been noticed if it were silent.
constexpr double kPatience = 0.75;

// One shard with its endpoint. Its own thread builds, uses and destroys it.
struct ShardPlace {
  std::unique_ptr<Transport> transport;
  std::unique_ptr<ps::ShardServer> server;
  std::optional<Duration> core_wait;  // of serving
  Status status;
};

// The state that a shard carries from one membership epoch to the next.
struct CarriedShard {
  bool has_state = false;
  TrainingState state;
};

// The counts of the shards of one process: over all membership epochs, or, for state that is carried over, in the last.
class ServerTotals {
 public:
  void begin_membership() { figures_.updates = rows_made_ = table_bytes_ = 0; }
  void add(const ShardPlace& place);

  const ServerFigures& figures() const { return figures_; }
  std::string to_text() const {
    return fmt::format("served {} pushes, {} of them late, in {} updates; dropped {} messages", figures_.pushes, late_,
                       figures_.updates, figures_.dropped);
  }
  // Empty if there are no tables.
  std::string tables_text() const {
    if (rows_made_ == 0) return {};
    return fmt::format("{} rows in {}, {} pulled, {} pushed", rows_made_,
                       format_bytes(static_cast<double>(table_bytes_)), rows_pulled_, rows_pushed_);
  }

 private:
  ServerFigures figures_;
  std::int64_t late_ = 0, rows_pulled_ = 0, rows_pushed_ = 0;
  std::int64_t rows_made_ = 0, table_bytes_ = 0;
};

void ServerTotals::add(const ShardPlace& place) {
  const ps::ShardServerCounters counters = place.server->counters();
  add_shard(ps::figures_of(counters, place.transport->counters(), place.core_wait), figures_);
  late_ += counters.shard.late;
  rows_pulled_ += counters.shard.rows_pulled;
  rows_pushed_ += counters.shard.rows_pushed;
  rows_made_ += counters.shard.rows_made;
  table_bytes_ += counters.shard.table_bytes;
}

// A server or a standby through all membership epochs of a run. Its shards keep their state.
class Server {
 public:
  explicit Server(const RoleContext& context)
      : context_(context),
        config_(context.config),
        clock_(context.host.clock()),
        link_(context.host.make_link(context.config)),
        shards_(ps_group_of(context.config).shards_of_server(context.rank)),
        carried_(static_cast<std::size_t>(shards_ * stages_of(context.config))) {}

  Status run();

 private:
  Status serve_in(const MembershipEpoch& membership);
  // Goes back to the state of its shards in a checkpoint.
  Status restore(const std::string& folder);
  // A replica that must go on, and receives no state from another, must have state of its own.
  Status check_carried(const MembershipEpoch& membership) const;
  void serve(const MembershipEpoch& membership, std::vector<ShardPlace>& places);
  Status connect(const MembershipEpoch& membership, std::vector<ShardPlace>& places);
  ps::ShardServerOptions options_in(const MembershipEpoch& membership, std::size_t place) const;
  // Returns the group as the shard of that place sees it, its number there, and its rank.
  ps::PsGroup group_of(std::size_t place) const { return ps_group_of(config_, stage_of(place)); }
  int stage_of(std::size_t place) const { return static_cast<int>(place) / shards_; }
  int shard_of(std::size_t place) const {
    return ps_group_of(config_).first_shard_of(context_.rank) + static_cast<int>(place) % shards_;
  }
  int rank_of(std::size_t place) const;
  // Returns the epoch as those of the place's stage have it.
  MembershipEpoch of_stage(const MembershipEpoch& membership, std::size_t place) const {
    return is_pipelined(config_) ? of_part(config_, membership, {.stage = stage_of(place)}) : membership;
  }
  ps::ReplicaRole role_in(const MembershipEpoch& membership) const;
  void carry_on(const std::vector<ShardPlace>& places);
  void say_what_was_served(ps::ReplicaRole role);
  TimePoint deadline() const { return clock_.now() + from_seconds(config_.timeout_seconds); }

  // Runs `body`, which returns the place's status, for each shard on a thread of its own. If memory or threads run out,
  // `on_exhausted` must end the others.
  template <typename Body>
  void for_each_place(std::vector<ShardPlace>& places, const Body& body, const std::function<void()>& on_exhausted) {
    const auto interrupt_if_exhausted = [&](const Status& status) {
      if (status.code() == Code::kResourceExhausted) on_exhausted();
    };
    std::vector<std::unique_ptr<Threads::Handle>> threads;
    for (std::size_t i = 0; i < places.size(); ++i) {
      const Status started = caught([&] {
        threads.push_back(context_.host.threads().start("shard", [&, i] {
          places[i].status = caught([&] { return body(places[i], i); });
          interrupt_if_exhausted(places[i].status);
        }));
      });
      if (started.ok()) continue;
      places[i].status = started;
      return interrupt_if_exhausted(started);
    }
  }
  // Ignores places that were only interrupted, whose status does not say why.
  static Status first_failure(const std::vector<ShardPlace>& places) {
    Status first;
    for (const ShardPlace& place : places) {
      if (first.ok() || first.code() == Code::kCancelled) first = place.status.ok() ? first : place.status;
    }
    return first;
  }

  const RoleContext& context_;
  const ResolvedRun& config_;
  const Clock& clock_;
  const std::shared_ptr<ProcessLink> link_;
  const int shards_;  // of each stage
  std::vector<CarriedShard> carried_;
  std::unique_ptr<ShardCheckpoints> checkpoints_;
  ServerTotals totals_;
};

Status Server::run() {
  std::vector<HeldShard> held;
  for (std::size_t place = 0; place < carried_.size(); ++place) held.push_back({stage_of(place), shard_of(place)});
  SYNCOPATE_ASSIGN_OR_RETURN(checkpoints_, ShardCheckpoints::create(context_, std::move(held)));
  return take_part_in_memberships(
      context_, clock_, [this] { context_.activity.rest("waiting for the others", 0); },
      [this](const MembershipEpoch& membership) { return serve_in(membership); });
}

Status Server::serve_in(const MembershipEpoch& membership) {
  if (context_.tracer != nullptr) context_.tracer->begin_membership(membership.number);
  if (!membership.restore.empty()) SYNCOPATE_RETURN_IF_ERROR(restore(membership.restore));
  SYNCOPATE_RETURN_IF_ERROR(check_carried(membership));
  std::vector<ShardPlace> places(carried_.size());
  SYNCOPATE_RETURN_IF_ERROR(connect(membership, places));
  const auto interrupt = [&] {
    for (ShardPlace& place : places) place.transport->interrupt();
  };
  {
    const Subscription stop = context_.control.on_stop(interrupt);
    const Subscription regroup = context_.control.on_regroup(interrupt);
    const Subscription losses = context_.control.on_worker_lost([&](int worker) {
      for (ShardPlace& place : places) place.server->worker_lost(worker);
    });
    serve(membership, places);
  }
  totals_.begin_membership();
  for (const ShardPlace& place : places) totals_.add(place);
  const Status status = first_failure(places);
  if (status.ok()) {
    checkpoints_->finish();
    say_what_was_served(role_in(membership));
  } else {
    carry_on(places);
  }
  return status;
}

Status Server::restore(const std::string& folder) {
  context_.activity.set("reading a checkpoint", 0);
  for (std::size_t i = 0; i < carried_.size(); ++i) {
    SYNCOPATE_ASSIGN_OR_RETURN(TrainingState state, checkpoints_->read(folder, i));
    carried_[i] = {.has_state = true, .state = std::move(state)};
  }
  return Status();
}

Status Server::check_carried(const MembershipEpoch& membership) const {
  if (!goes_on(membership) || role_in(membership) == ps::ReplicaRole::kTail) return {};
  if (std::ranges::all_of(carried_, &CarriedShard::has_state)) return {};
  return Status::internal(
      fmt::format("membership {} is to go on, and this process holds no state of its shards", membership.number));
}

// For a shard with two replicas, the head writes checkpoints.
void Server::serve(const MembershipEpoch& membership, std::vector<ShardPlace>& places) {
  const bool takes_checkpoints = role_in(membership) != ps::ReplicaRole::kTail;
  if (takes_checkpoints) {
    std::vector<ps::ShardServer*> servers;
    std::vector<std::int64_t> first_steps;
    for (std::size_t i = 0; i < places.size(); ++i) {
      servers.push_back(places[i].server.get());
      first_steps.push_back(goes_on(membership) && carried_[i].has_state ? carried_[i].state.step : 0);
    }
    checkpoints_->begin(membership.number, servers, first_steps);
  }
  context_.activity.rest("serving", 0);
  for_each_place(
      places,
      [&](ShardPlace& place, std::size_t) {
        const std::optional<CoreWait> core_wait =
            context_.host.computes_here() ? CoreWait::of_this_thread() : std::nullopt;
        const Duration before = core_wait ? core_wait->total() : Duration::zero();
        const Status status = place.server->serve();
        if (core_wait) place.core_wait = core_wait->total() - before;
        return status;
      },
      [&] {
        for (ShardPlace& place : places) place.transport->interrupt();
      });
  if (takes_checkpoints) checkpoints_->end();
}

Status Server::connect(const MembershipEpoch& membership, std::vector<ShardPlace>& places) {
  context_.activity.set("connecting", 0);
  const auto connect_place = [&](ShardPlace& place, std::size_t i) -> Status {
    Result<std::unique_ptr<Transport>> transport =
        connect_member(context_, group_of(i), of_stage(membership, i), rank_of(i), link_, clock_);
    if (!transport.ok()) return transport.status();
    place.transport = std::move(*transport);
    place.server = std::make_unique<ps::ShardServer>(options_in(membership, i), *place.transport, clock_);
    const Duration patience = from_seconds(kPatience * config_.timeout_seconds);
    // The silent worker may be one of another stage, for which this one waits, and which it names.
    if (is_pipelined(config_)) return Status();
    place.server->on_missing(patience,
                             [this, patience](int worker) { context_.control.report_missing(worker, patience); });
    place.server->excuse_missing([this] { return clock_.now() < context_.control.patience()->until(); });
    return Status();
  };
  for_each_place(places, connect_place, [] {});  // the others' waits have a deadline
  return first_failure(places);
}

ps::ShardServerOptions Server::options_in(const MembershipEpoch& membership, std::size_t place) const {
  ps::ShardServerOptions options{.group = group_of(place),
                                 .consistency = consistency_of(config_),
                                 .optimizer = optimizer_of(config_),
                                 .staleness = staleness_of(config_),
                                 .compression = compression_of(config_),
                                 .seed = config_.seed,
                                 .timeout = from_seconds(config_.timeout_seconds),
                                 .leaves_out = config_.on_nan == OnNan::kSkip,
                                 .hosts = host_groups_of(config_)};
  options.there.assign(static_cast<std::size_t>(config_.workers), false);
  for (const int worker : pushers_of(config_, of_stage(membership, place)))
    options.there[static_cast<std::size_t>(worker)] = true;
  options.role = role_in(membership);
  options.tracer = context_.tracer;
  const CarriedShard& carried = carried_[place];
  const bool is_given = options.role == ps::ReplicaRole::kTail;
  if (goes_on(membership) && !is_given && carried.has_state) options.restored = &carried.state;
  return options;
}

int Server::rank_of(std::size_t place) const {
  const ps::PsGroup group = group_of(place);
  return context_.role == Role::kStandby ? group.rank_of_standby(shard_of(place))
                                         : group.rank_of_shard(shard_of(place));
}

ps::ReplicaRole Server::role_in(const MembershipEpoch& membership) const {
  const ServerRanks& ranks = membership.servers[static_cast<std::size_t>(context_.rank)];
  if (!ranks.has_server || !ranks.has_standby) return ps::ReplicaRole::kAlone;
  return ranks.standby_leads == (context_.role == Role::kStandby) ? ps::ReplicaRole::kHead : ps::ReplicaRole::kTail;
}

void Server::carry_on(const std::vector<ShardPlace>& places) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].server->save(carried_[i].state)) carried_[i].has_state = true;
  }
}

// For a shard with two replicas, the head reports for both.
void Server::say_what_was_served(ps::ReplicaRole role) {
  hand_in_trace(context_);
  log_info("{}", totals_.to_text());
  if (role == ps::ReplicaRole::kTail) return context_.control.finished({.dropped = totals_.figures().dropped});
  if (const std::string tables = totals_.tables_text(); !tables.empty()) {
    context_.control.tell(fmt::format("tables on server {}", context_.rank), tables);
  }
  context_.control.finished(totals_.figures());
}

}  // namespace

Status run_server(const RoleContext& context) { return Server(context).run(); }

}  // namespace syncopate::experiments
