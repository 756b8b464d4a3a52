#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <mutex>
#include <thread>
#include <vector>

#include "experiments/process/data_endpoint.h"
#include "experiments/process/replica_group.h"
#include "experiments/process/roles.h"
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

}  // namespace

Status run_server(const RoleContext& context) {
  const RunConfig& config = context.config;
  const ps::PsGroup group = ps_group_of(config);
  const SteadyClock clock;
  const std::shared_ptr<ProcessLink> link = make_link(config);
  std::vector<ShardPlace> places(static_cast<std::size_t>(config.shards_per_server));

  const auto for_each_place = [&](const auto& body) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < config.shards_per_server; ++i) {
      threads.emplace_back([&, i] { body(places[static_cast<std::size_t>(i)], i); });
    }
  };
  context.activity.set("connecting", 0);
  for_each_place([&](ShardPlace& place, int i) {
    const int rank = group.rank_of_shard(context.rank * config.shards_per_server + i);
    Result<std::unique_ptr<Transport>> transport = connect_endpoint(context, rank, group.size(), link, clock);
    if (!transport.ok()) {
      place.status = transport.status();
      return;
    }
    place.transport = std::move(*transport);
    const ps::ShardServerOptions options{.group = group,
                                         .consistency = consistency_of(config),
                                         .optimizer = optimizer_of(config),
                                         .staleness = staleness_of(config),
                                         .compression = compression_of(config),
                                         .seed = config.seed,
                                         .timeout = from_seconds(config.timeout_seconds)};
    place.server = std::make_unique<ps::ShardServer>(options, *place.transport, clock);
  });
  for (const ShardPlace& place : places) SYNCOPATE_RETURN_IF_ERROR(place.status);

  context.control.on_stop([&] {
    for (ShardPlace& place : places) place.transport->interrupt();
  });
  context.control.on_worker_lost([&](int worker) {
    for (ShardPlace& place : places) place.server->worker_lost(worker);
  });
  context.activity.rest("serving", 0);
  for_each_place([](ShardPlace& place, int) { place.status = place.server->serve(); });
  context.control.on_stop(nullptr);
  context.control.on_worker_lost(nullptr);

  std::int64_t updates = 0, pushes = 0, late = 0, dropped = 0;
  ps::ShardCounters tables;
  for (const ShardPlace& place : places) {
    SYNCOPATE_RETURN_IF_ERROR(place.status);
    const ps::ShardServerCounters counters = place.server->counters();
    updates += counters.shard.updates;
    pushes += counters.shard.pushes;
    late += counters.shard.late;
    dropped += counters.dropped + not_let_through(place.transport->counters());
    tables.rows_pulled += counters.shard.rows_pulled;
    tables.rows_pushed += counters.shard.rows_pushed;
    tables.rows_made += counters.shard.rows_made;
    tables.table_bytes += counters.shard.table_bytes;
  }
  spdlog::info("served {} pushes, {} of them late, in {} updates; dropped {} messages", pushes, late, updates, dropped);
  if (tables.rows_made > 0) {
    context.control.tell(
        fmt::format("tables on server {}", context.rank),
        fmt::format("{} rows in {}, {} pulled, {} pushed", tables.rows_made,
                    format_bytes(static_cast<double>(tables.table_bytes)), tables.rows_pulled, tables.rows_pushed));
  }
  context.control.finished(updates, pushes, dropped);
  return Status();
}

}  // namespace syncopate::experiments
