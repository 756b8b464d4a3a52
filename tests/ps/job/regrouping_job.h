// A parameter-server job that goes on through membership epochs: each member, a thread, saves what it must remember,
// connects anew and goes on. What a coordinator would decide, a test says.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ps/client/local_steps_strategy.h"
#include "ps/client/ps_strategy.h"
#include "ps/server/shard_server.h"
#include "tests/ps/job/consistency_text.h"
#include "tests/support/cluster.h"
#include "tests/support/tripping_transport.h"

namespace syncopate::ps {

struct RegroupingOptions {
  PsGroup group;
  ParamLayout layout;
  std::string consistency = "async";
  OptimizerConfig optimizer{.kind = OptimizerKind::kSgd};
  StalenessOptions staleness;
  Sharding sharding{.chunk_bytes = 256};
  int pipeline_depth = 0;
  bool overlap_forward = false;
  Compression compression;
  std::int64_t steps = 8;
  double learning_rate = 1;
  OptimizerConfig local_optimizer{.kind = OptimizerKind::kSgd};
};

// Who takes part, and where it ends.
struct MembershipPlan {
  std::vector<int> lost = {};  // members, in ranks of the group, that are not there
  int messages = 0;            // received by those that count, after which it is broken off; 0: it runs to its end
  int counts = -1;             // whose messages count; -1: everybody's
};

class RegroupingJob {
 public:
  explicit RegroupingJob(RegroupingOptions options) : options_(std::move(options)) {}

  // Fills the gradients of worker `rank` in a step: by default nothing.
  std::function<void(int rank, std::int64_t step, std::span<float> gradients)> gradients;
  // What is added of a worker's weights to its gradients: what it comes to then depends on what it is answered.
  float decay = 0;
  // By table, the rows of a step; must stay as they are.
  std::function<std::vector<RowKeys>(int rank, std::int64_t step)> rows;
  // Behind the farewell.
  std::function<Status(int rank, SyncStrategy& strategy)> after_leave;
  // Once, in the thread of the worker that has finished `step`.
  std::function<void(int rank, std::int64_t step, const std::vector<std::unique_ptr<ShardServer>>& servers)> after_step;

  // True if it ran to its end: then weights() are the job's.
  bool run(const MembershipPlan& plan) {
    testing_support::Trip trip;
    std::vector<std::unique_ptr<Transport>> endpoints = testing_support::connect_group("inproc", options_.group.size());
    std::atomic<bool> broken_off{false};
    for (int rank = 0; rank < options_.group.size(); ++rank) {
      std::unique_ptr<Transport>& endpoint = endpoints[static_cast<std::size_t>(rank)];
      const bool counts = plan.counts < 0 || plan.counts == rank;
      endpoint = std::make_unique<testing_support::TrippingTransport>(std::move(endpoint), counts ? &trip : nullptr);
    }
    trip.messages_left = plan.messages;
    trip.trip = [&] {
      broken_off = true;
      for (const std::unique_ptr<Transport>& endpoint : endpoints) endpoint->interrupt();
    };
    there_.assign(static_cast<std::size_t>(options_.group.size()), true);
    for (const int rank : plan.lost) {
      there_[static_cast<std::size_t>(rank)] = false;
      carried_.erase(rank);
    }
    make_servers(endpoints);
    testing_support::run_ranks(options_.group.size(), [&](int rank) {
      if (!there_[static_cast<std::size_t>(rank)]) return;
      if (options_.group.is_worker(rank)) {
        work(rank, *endpoints[static_cast<std::size_t>(rank)]);
      } else {
        const Status status = servers_[static_cast<std::size_t>(rank - options_.group.workers)]->serve();
        EXPECT_TRUE(status.ok() || status.code() == Code::kCancelled) << status.message();
      }
    });
    save_servers();
    servers_.clear();
    begun_ = begun_ || joined_.load();
    broken_off_ += broken_off ? 1 : 0;
    return !broken_off;
  }

  // What a member has saved; it may be taken away.
  std::map<int, TrainingState>& carried() { return carried_; }
  // The weights of the worker that left last.
  const std::vector<float>& weights() const { return weights_; }
  // By worker: the first step of each membership epoch.
  std::map<int, std::vector<std::int64_t>>& first_steps() { return first_steps_; }
  std::int64_t dropped() const { return dropped_; }
  int broken_off() const { return broken_off_; }
  // The job goes on from states that are put into carried(), as from a checkpoint.
  void begin_from_carried() { begun_ = true; }

 private:
  bool is_there(int rank) const { return there_[static_cast<std::size_t>(rank)]; }

  // The home that has a state is the head.
  int head_of(int shard) const {
    const int home = options_.group.rank_of_shard(shard);
    if (options_.group.replicas == 0) return home;
    const int standby = options_.group.rank_of_standby(shard);
    if (!is_there(home)) return standby;
    return begun_ && !carried_.contains(home) && is_there(standby) ? standby : home;
  }

  ReplicaRole role_of(int rank) const {
    const int shard = options_.group.shard_of_rank(rank);
    if (options_.group.replicas == 0 || !is_there(options_.group.other_replica_of(rank))) return ReplicaRole::kAlone;
    return head_of(shard) == rank ? ReplicaRole::kHead : ReplicaRole::kTail;
  }

  void make_servers(const std::vector<std::unique_ptr<Transport>>& endpoints) {
    const std::vector<bool> workers(there_.begin(), there_.begin() + options_.group.workers);
    for (int rank = options_.group.workers; rank < options_.group.size(); ++rank) {
      servers_.push_back(nullptr);
      if (!is_there(rank)) continue;
      const bool goes_on = begun_ && carried_.contains(rank);
      servers_.back() =
          std::make_unique<ShardServer>(ShardServerOptions{.group = options_.group,
                                                           .consistency = consistency_of(options_.consistency),
                                                           .optimizer = options_.optimizer,
                                                           .staleness = options_.staleness,
                                                           .compression = options_.compression,
                                                           .timeout = std::chrono::seconds(60),
                                                           .there = workers,
                                                           .restored = goes_on ? &carried_[rank] : nullptr,
                                                           .role = role_of(rank)},
                                        *endpoints[static_cast<std::size_t>(rank)], clock_);
    }
  }

  void save_servers() {
    for (int rank = options_.group.workers; rank < options_.group.size(); ++rank) {
      const std::unique_ptr<ShardServer>& server = servers_[static_cast<std::size_t>(rank - options_.group.workers)];
      if (server == nullptr) continue;
      dropped_ += server->counters().dropped;
      if (!server->save(carried_[rank])) carried_.erase(rank);
    }
  }

  std::unique_ptr<SyncStrategy> strategy_of(int rank, Transport& endpoint) {
    int chief = 0;
    while (!is_there(chief)) ++chief;
    std::vector<int> heads;
    for (int shard = 0; shard < options_.group.shards(); ++shard) heads.push_back(head_of(shard));
    auto servers = std::make_unique<PsStrategy>(PsStrategyOptions{.group = options_.group,
                                                                  .sharding = options_.sharding,
                                                                  .pipeline_depth = options_.pipeline_depth,
                                                                  .overlap_forward = options_.overlap_forward,
                                                                  .compression = options_.compression,
                                                                  .timeout = std::chrono::seconds(60),
                                                                  .chief = chief,
                                                                  .goes_on = begun_,
                                                                  .heads = heads,
                                                                  .undoes_pushes = true},
                                                endpoint, clock_, nullptr);
    const Consistency consistency = consistency_of(options_.consistency);
    if (!consistency.pushes_weights()) return servers;
    LocalStepsOptions local{.optimizer = options_.local_optimizer, .period = consistency.period(), .elastic_rate = {}};
    if (consistency.is_elastic()) local.elastic_rate = 0.25f;
    local.has_quorum = !consistency.quorum().is_all();
    return std::make_unique<LocalStepsStrategy>(local, std::move(servers), clock_, rank);
  }

  void work(int rank, Transport& endpoint) {
    const std::unique_ptr<SyncStrategy> strategy = strategy_of(rank, endpoint);
    const ParamArenas arenas = *strategy->allocate(options_.layout);
    if (const auto state = carried_.find(rank); state != carried_.end()) {
      const Status restored = strategy->resumable()->restore(state->second);
      ASSERT_TRUE(restored.ok()) << restored.message();
    }
    const Status status = train(rank, *strategy, arenas);
    ASSERT_TRUE(status.ok() || status.code() == Code::kCancelled) << status.message();
    TrainingState saved;
    ASSERT_TRUE(strategy->resumable()->save(saved).ok());
    const std::lock_guard lock(mutex_);
    carried_[rank] = std::move(saved);
  }

  Status train(int rank, SyncStrategy& strategy, const ParamArenas& arenas) {
    const Result<std::vector<Range>> buckets = strategy.join();
    if (!buckets.ok()) return buckets.status();
    joined_ = true;
    {
      const std::lock_guard lock(mutex_);
      first_steps_[rank].push_back(strategy.first_step());
    }
    for (std::int64_t step = strategy.first_step(); step < options_.steps; ++step) {
      const std::vector<RowKeys> keys = rows ? rows(rank, step) : std::vector<RowKeys>();
      strategy.begin_step({.step = step, .learning_rate = options_.learning_rate, .rows = keys});
      SYNCOPATE_RETURN_IF_ERROR(strategy.weights_needed({0, arenas.weights.size()}));
      std::ranges::fill(arenas.gradients, 0.0f);
      if (gradients) gradients(rank, step, arenas.gradients);
      for (std::size_t i = 0; i < arenas.weights.size() && decay > 0; ++i) {
        arenas.gradients[i] += decay * arenas.weights[i];
      }
      for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) strategy.gradient_ready(bucket);
      SYNCOPATE_RETURN_IF_ERROR(strategy.finish_step().status());
      if (after_step) after_step(rank, step, servers_);
    }
    SYNCOPATE_RETURN_IF_ERROR(strategy.weights_needed({0, arenas.weights.size()}));
    SYNCOPATE_RETURN_IF_ERROR(strategy.leave());
    if (after_leave) SYNCOPATE_RETURN_IF_ERROR(after_leave(rank, strategy));
    const std::lock_guard lock(mutex_);
    weights_.assign(arenas.weights.begin(), arenas.weights.end());
    return Status();
  }

  RegroupingOptions options_;
  SteadyClock clock_;
  bool begun_ = false;
  std::atomic<bool> joined_{false};
  std::vector<bool> there_;                            // by rank
  std::vector<std::unique_ptr<ShardServer>> servers_;  // by rank, behind the workers
  std::int64_t dropped_ = 0;
  int broken_off_ = 0;  // membership epochs

  std::mutex mutex_;
  std::map<int, TrainingState> carried_;  // by rank; while threads run, guarded by mutex_
  std::vector<float> weights_;            // guarded by mutex_
  std::map<int, std::vector<std::int64_t>> first_steps_;
};

}  // namespace syncopate::ps
