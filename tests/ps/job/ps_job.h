// A whole parameter-server job in one test: every worker and every shard is a thread.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "common/random.h"
#include "ps/client/ps_strategy.h"
#include "ps/server/shard_server.h"
#include "tests/ps/job/consistency_text.h"
#include "tests/support/cluster.h"

namespace syncopate::ps {

struct PsJobOptions {
  PsGroup group;
  std::string consistency = "async";
  OptimizerConfig optimizer{.kind = OptimizerKind::kSgd};
  StalenessOptions staleness;
  std::string wire = "inproc";
  std::size_t chunk_bytes = 256 * 1024;
  std::size_t window_bytes = 8 * 1024 * 1024;
  int pipeline_depth = 0;
  bool overlap_forward = false;
  Compression compression;
  PushScheduler::Order push_order = PushScheduler::Order::kFifo;
  Duration worker_timeout = std::chrono::seconds(60);
  std::uint64_t seed = 1;  // of tables' rows
  // Puts something between an endpoint and who uses it; null: nothing.
  std::function<std::unique_ptr<Transport>(int rank, std::unique_ptr<Transport>)> wrap;
};

class PsJob {
 public:
  explicit PsJob(const PsJobOptions& options)
      : options_(options), endpoints_(testing_support::connect_group(options.wire, options.group.size())) {
    for (int rank = 0; options_.wrap && rank < options_.group.size(); ++rank) {
      std::unique_ptr<Transport>& endpoint = endpoints_[static_cast<std::size_t>(rank)];
      endpoint = options_.wrap(rank, std::move(endpoint));
    }
    for (int shard = 0; shard < options.group.shards(); ++shard) {
      servers_.push_back(
          std::make_unique<ShardServer>(ShardServerOptions{.group = options.group,
                                                           .consistency = consistency_of(options.consistency),
                                                           .optimizer = options.optimizer,
                                                           .staleness = options.staleness,
                                                           .compression = options.compression,
                                                           .seed = options.seed,
                                                           .timeout = std::chrono::seconds(60)},
                                        endpoint(options.group.rank_of_shard(shard)), clock_));
      outcomes_.push_back(std::make_unique<std::promise<Status>>());
      served_.push_back(outcomes_.back()->get_future().share());
    }
  }

  using WorkerBody = std::function<void(int rank, PsStrategy& strategy)>;

  // Runs all shards, and body(rank) for each worker, until all have returned.
  void run(const WorkerBody& body) {
    testing_support::run_ranks(options_.group.size(), [&](int rank) {
      if (options_.group.is_worker(rank)) {
        PsStrategy strategy({.group = options_.group,
                             .sharding = {.chunk_bytes = options_.chunk_bytes},
                             .push_order = options_.push_order,
                             .window_bytes = options_.window_bytes,
                             .pipeline_depth = options_.pipeline_depth,
                             .overlap_forward = options_.overlap_forward,
                             .compression = options_.compression,
                             .timeout = options_.worker_timeout},
                            endpoint(rank), clock_, nullptr);
        body(rank, strategy);
      } else {
        const auto shard = static_cast<std::size_t>(options_.group.shard_of_rank(rank));
        outcomes_[shard]->set_value(servers_[shard]->serve());
      }
    });
  }

  Transport& endpoint(int rank) { return *endpoints_[static_cast<std::size_t>(rank)]; }
  ShardServer& server(int shard) { return *servers_[static_cast<std::size_t>(shard)]; }
  // What serve() of `shard` returned; waits for it.
  Status served(int shard) { return served_[static_cast<std::size_t>(shard)].get(); }
  void lose(int worker) {
    for (const std::unique_ptr<ShardServer>& server : servers_) server->worker_lost(worker);
  }
  ShardServerCounters total() const {
    ShardServerCounters total;
    for (const std::unique_ptr<ShardServer>& server : servers_) {
      const ShardServerCounters counters = server->counters();
      total.shard.pushes += counters.shard.pushes;
      total.shard.late += counters.shard.late;
      total.shard.updates += counters.shard.updates;
      total.shard.staleness_sum += counters.shard.staleness_sum;
      total.shard.copies += counters.shard.copies;
      total.shard.workers_lost += counters.shard.workers_lost;
      total.shard.rows_pulled += counters.shard.rows_pulled;
      total.shard.rows_pushed += counters.shard.rows_pushed;
      total.dropped += counters.dropped;
    }
    return total;
  }

 private:
  PsJobOptions options_;
  SteadyClock clock_;
  std::vector<std::unique_ptr<Transport>> endpoints_;
  std::vector<std::unique_ptr<ShardServer>> servers_;
  std::vector<std::unique_ptr<std::promise<Status>>> outcomes_;
  std::vector<std::shared_future<Status>> served_;
};

inline ParamLayout small_layout() {
  ParamLayout layout;
  layout.add("dense1.weight", {37, 11});
  layout.add("dense1.bias", {37});
  layout.add("dense2.weight", {10, 37});
  return layout;
}

// Sets all values of small_layout's tensors. Padding stays zero, as everywhere.
inline void fill_tensors(std::span<float> arena, float value) {
  const ParamLayout layout = small_layout();
  for (const TensorSpec& tensor : layout.tensors()) std::ranges::fill(slice(arena, tensor.range), value);
}

// The gradient of worker `rank` in step `step`: different in every element.
inline void make_gradient(int rank, std::int64_t step, std::span<float> gradient) {
  Random random(static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(rank));
  for (float& value : gradient) value = static_cast<float>(random.normal());
}

// One step with the gradient that is in the arena.
inline Result<SyncStats> step(SyncStrategy& strategy, std::int64_t number, std::size_t buckets, double learning_rate) {
  strategy.begin_step({.step = number, .learning_rate = learning_rate});
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) strategy.gradient_ready(bucket);
  return strategy.finish_step();
}

}  // namespace syncopate::ps
