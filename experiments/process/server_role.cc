#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

#include "experiments/config/survival_rules.h"
#include "experiments/process/data_endpoint.h"
#include "experiments/process/replica_group.h"
#include "experiments/process/roles.h"
#include "experiments/process/shard_checkpoints.h"
#include "experiments/report/format.h"
#include "ps/shard_server.h"

namespace syncopate::experiments {
namespace {

// One shard with its endpoint. Built, used and destroyed by its own thread.
struct ShardPlace {
  std::unique_ptr<Transport> transport;
  std::unique_ptr<ps::ShardServer> server;
  Status status;
};

// What a shard has come to in one generation, for the next.
struct CarriedShard {
  bool has_state = false;
  TrainingState state;
};

// What servers have counted in all generations.
struct ServerTotals {
  std::int64_t updates = 0, pushes = 0, late = 0, dropped = 0;
  ps::ShardCounters tables = {};  // of these figures alone

  void add(const ps::ShardServerCounters& counters);
};

void ServerTotals::add(const ps::ShardServerCounters& counters) {
  updates += counters.shard.updates;
  pushes += counters.shard.pushes;
  late += counters.shard.late;
  dropped += counters.dropped;
  tables.rows_pulled += counters.shard.rows_pulled;
  tables.rows_pushed += counters.shard.rows_pushed;
  tables.rows_made += counters.shard.rows_made;
  tables.table_bytes += counters.shard.table_bytes;
}

// A server or a standby through all generations of a run: what its shards hold stays.
class Server {
 public:
  explicit Server(const RoleContext& context)
      : context_(context),
        config_(context.config),
        group_(ps_group_of(context.config)),
        link_(make_link(context.config)),
        carried_(static_cast<std::size_t>(context.config.shards_per_server)) {}

  Status run();

 private:
  Status serve_in(const Generation& generation);
  // Goes back to what a checkpoint has of its shards.
  Status restore(const std::string& folder);
  void serve(const Generation& generation, std::vector<ShardPlace>& places);
  Status connect(const Generation& generation, std::vector<ShardPlace>& places);
  ps::ShardServerOptions options_in(const Generation& generation, std::size_t place) const;
  int rank_of(std::size_t place) const;
  ps::HomeRole role_in(const Generation& generation) const;
  void carry_on(const std::vector<ShardPlace>& places);
  void say_what_was_served(const std::vector<ShardPlace>& places);
  TimePoint deadline() const { return clock_.now() + from_seconds(config_.timeout_seconds); }

  // Runs `body` for each shard on a thread of its own.
  template <typename Body>
  static void for_each_place(std::vector<ShardPlace>& places, const Body& body) {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < places.size(); ++i) threads.emplace_back([&, i] { body(places[i], i); });
  }
  static Status first_failure(const std::vector<ShardPlace>& places) {
    const auto failed = std::ranges::find_if(places, [](const ShardPlace& place) { return !place.status.ok(); });
    return failed == places.end() ? Status() : failed->status;
  }

  const RoleContext& context_;
  const RunConfig& config_;
  const ps::PsGroup group_;
  const SteadyClock clock_;
  const std::shared_ptr<ProcessLink> link_;
  std::vector<CarriedShard> carried_;
  std::unique_ptr<ShardCheckpoints> checkpoints_;
};

Status Server::run() {
  Result<std::unique_ptr<ShardCheckpoints>> checkpoints =
      ShardCheckpoints::create(context_, context_.rank * config_.shards_per_server, config_.shards_per_server);
  if (!checkpoints.ok()) return checkpoints.status();
  checkpoints_ = std::move(*checkpoints);
  const Recovery recovery = recovery_of(config_);
  Status status;
  std::int64_t last = -1;
  while (true) {
    context_.activity.rest("waiting for the others", 0);
    const Result<Generation> generation = context_.control.join_generation(last, deadline());
    if (!generation.ok()) {
      return status.ok() || status.code() == Code::kCancelled ? generation.status() : status;
    }
    last = generation->number;
    status = serve_in(*generation);
    if (!recovery.may_go_on_after(status.code())) return status;
    spdlog::info("generation {} is over: {}", last, status.message());
    if (status.code() != Code::kCancelled) context_.control.report_trouble(status);
  }
}

Status Server::serve_in(const Generation& generation) {
  if (!generation.restore.empty()) SYNCOPATE_RETURN_IF_ERROR(restore(generation.restore));
  std::vector<ShardPlace> places(carried_.size());
  SYNCOPATE_RETURN_IF_ERROR(connect(generation, places));
  const auto interrupt = [&] {
    for (ShardPlace& place : places) place.transport->interrupt();
  };
  context_.control.on_stop(interrupt);
  context_.control.on_regroup(interrupt);
  context_.control.on_worker_lost([&](int worker) {
    for (ShardPlace& place : places) place.server->worker_lost(worker);
  });
  serve(generation, places);
  context_.control.on_stop(nullptr);
  context_.control.on_regroup(nullptr);
  context_.control.on_worker_lost(nullptr);
  const Status status = first_failure(places);
  if (status.ok()) {
    checkpoints_->finish();
    say_what_was_served(places);
  } else {
    carry_on(places);
  }
  return status;
}

Status Server::restore(const std::string& folder) {
  context_.activity.set("reading a checkpoint", 0);
  for (std::size_t i = 0; i < carried_.size(); ++i) {
    Result<TrainingState> state = checkpoints_->read(folder, i);
    if (!state.ok()) return state.status();
    carried_[i] = {.has_state = true, .state = std::move(*state)};
  }
  return Status();
}

// Of a shard with two homes, the head writes checkpoints.
void Server::serve(const Generation& generation, std::vector<ShardPlace>& places) {
  const bool takes_checkpoints = role_in(generation) != ps::HomeRole::kTail;
  if (takes_checkpoints) {
    std::vector<ps::ShardServer*> servers;
    std::vector<std::int64_t> first_steps;
    for (std::size_t i = 0; i < places.size(); ++i) {
      servers.push_back(places[i].server.get());
      first_steps.push_back(goes_on(generation) && carried_[i].has_state ? carried_[i].state.step : 0);
    }
    checkpoints_->begin(generation.number, servers, first_steps);
  }
  context_.activity.rest("serving", 0);
  for_each_place(places, [](ShardPlace& place, std::size_t) { place.status = place.server->serve(); });
  if (takes_checkpoints) checkpoints_->end();
}

Status Server::connect(const Generation& generation, std::vector<ShardPlace>& places) {
  context_.activity.set("connecting", 0);
  for_each_place(places, [&](ShardPlace& place, std::size_t i) {
    Result<std::unique_ptr<Transport>> transport = connect_member(context_, generation, rank_of(i), link_, clock_);
    if (!transport.ok()) {
      place.status = transport.status();
      return;
    }
    place.transport = std::move(*transport);
    place.server = std::make_unique<ps::ShardServer>(options_in(generation, i), *place.transport, clock_);
  });
  return first_failure(places);
}

ps::ShardServerOptions Server::options_in(const Generation& generation, std::size_t place) const {
  ps::ShardServerOptions options{.group = group_,
                                 .consistency = consistency_of(config_),
                                 .optimizer = optimizer_of(config_),
                                 .staleness = staleness_of(config_),
                                 .compression = compression_of(config_),
                                 .seed = config_.seed,
                                 .timeout = from_seconds(config_.timeout_seconds)};
  options.there.assign(static_cast<std::size_t>(config_.workers), false);
  for (const int worker : generation.workers) options.there[static_cast<std::size_t>(worker)] = true;
  options.role = role_in(generation);
  const CarriedShard& carried = carried_[place];
  const bool is_given = options.role == ps::HomeRole::kTail;
  if (goes_on(generation) && !is_given && carried.has_state) options.restored = &carried.state;
  return options;
}

int Server::rank_of(std::size_t place) const {
  const int shard = context_.rank * config_.shards_per_server + static_cast<int>(place);
  return context_.role == Role::kStandby ? group_.rank_of_standby(shard) : group_.rank_of_shard(shard);
}

ps::HomeRole Server::role_in(const Generation& generation) const {
  const ServerSeats& seats = generation.servers[static_cast<std::size_t>(context_.rank)];
  if (!seats.has_server || !seats.has_standby) return ps::HomeRole::kAlone;
  return seats.standby_leads == (context_.role == Role::kStandby) ? ps::HomeRole::kHead : ps::HomeRole::kTail;
}

void Server::carry_on(const std::vector<ShardPlace>& places) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].server->save(carried_[i].state)) carried_[i].has_state = true;
  }
}

void Server::say_what_was_served(const std::vector<ShardPlace>& places) {
  ServerTotals totals;
  for (const ShardPlace& place : places) totals.add(place.server->counters());
  spdlog::info("served {} pushes, {} of them late, in {} updates; dropped {} messages", totals.pushes, totals.late,
               totals.updates, totals.dropped);
  if (totals.tables.rows_made > 0) {
    context_.control.tell(fmt::format("tables on {} {}", name_of(context_.role), context_.rank),
                          fmt::format("{} rows in {}, {} pulled, {} pushed", totals.tables.rows_made,
                                      format_bytes(static_cast<double>(totals.tables.table_bytes)),
                                      totals.tables.rows_pulled, totals.tables.rows_pushed));
  }
  context_.control.finished(totals.updates, totals.pushes, totals.dropped);
}

}  // namespace

Status run_server(const RoleContext& context) { return Server(context).run(); }

}  // namespace syncopate::experiments
