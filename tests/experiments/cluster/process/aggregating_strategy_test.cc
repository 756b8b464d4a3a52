#include "experiments/cluster/process/aggregating_strategy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "common/transport/inproc_transport.h"
#include "common/transport/members_transport.h"
#include "ps/server/shard_server.h"
#include "tests/ps/job/ps_job.h"
#include "tests/support/cluster.h"
#include "tests/support/slowness.h"
#include "tests/support/test_keys.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing_support::connect_group;
using testing_support::run_ranks;
using testing_support::soon;

using Hosts = std::vector<int>;  // workers by host

constexpr ps::Sharding kSharding{.chunk_bytes = 1024};
constexpr int kSteps = 5;

int workers_of(const Hosts& hosts) { return std::accumulate(hosts.begin(), hosts.end(), 0); }

// A job on several hosts, of which every worker and every shard is a thread.
class JobOnHosts {
 public:
  using Body = std::function<void(int worker, SyncStrategy& strategy, Transport* wire)>;

  JobOnHosts(const Hosts& hosts, bool aggregated)
      : group_{.workers = workers_of(hosts), .servers = 2}, hosts_(hosts), groups_(hosts, aggregated) {}

  // The shards go on from `state`, by shard.
  void go_on_from(const std::vector<TrainingState>& states) { states_ = &states; }
  // One worker cuts its arena into other chunks than the others.
  void give_other_chunks(int worker) { other_chunks_of_ = worker; }
  Duration timeout = std::chrono::seconds(60);
  Duration longer_than_leader = std::chrono::seconds(60);
  bool workers_give_up = false;  // the shards, which would wait for them without end, are then interrupted

  // Runs body(worker) for each worker that connects, and all shards. Those of `wire` are null for who does not push.
  void run(const Body& body) {
    std::vector<int> members;
    for (int worker = 0; worker < group_.workers; ++worker) {
      if (groups_.pusher_for(worker) == worker) members.push_back(worker);
    }
    const auto pushers = members.size();
    for (int shard = 0; shard < group_.shards(); ++shard) members.push_back(group_.rank_of_shard(shard));
    auto endpoints = connect_group("sockets", static_cast<int>(members.size()));
    std::vector<std::unique_ptr<Transport>> wires(static_cast<std::size_t>(group_.size()));
    for (std::size_t i = 0; i < members.size(); ++i) {
      wires[static_cast<std::size_t>(members[i])] =
          std::make_unique<MembersTransport>(std::move(endpoints[i]), members, group_.size());
    }
    connect_hosts();
    std::atomic<int> training{group_.workers};
    run_ranks(group_.size(), [&](int rank) {
      Transport* const wire = wires[static_cast<std::size_t>(rank)].get();
      if (!group_.is_worker(rank)) return serve(rank, *wire, pushers);
      body(rank, *strategy_of(rank, wire), wire);
      if (--training == 0 && workers_give_up) {
        for (int shard = 0; shard < group_.shards(); ++shard) {
          wires[static_cast<std::size_t>(group_.rank_of_shard(shard))]->interrupt();
        }
      }
    });
  }

  // Trains, and returns the final weights of each worker.
  std::vector<std::vector<float>> trained(std::int64_t first_step = 0) {
    std::vector<std::vector<float>> weights(static_cast<std::size_t>(group_.workers));
    run([&](int worker, SyncStrategy& strategy, Transport*) {
      const ParamLayout layout = ps::small_layout();
      const ParamArenas arenas = *strategy.allocate(layout);
      if (worker == 0) std::ranges::fill(arenas.weights, 0.5f);
      const Result<std::vector<Range>> buckets = strategy.join();
      ASSERT_TRUE(buckets.ok()) << buckets.status().message();
      EXPECT_EQ(strategy.first_step(), first_step);
      for (std::int64_t number = first_step; number < first_step + kSteps; ++number) {
        ps::make_gradient(worker, number, arenas.gradients);
        const Result<SyncStats> stats = ps::step(strategy, number, buckets->size(), 0.1);
        ASSERT_TRUE(stats.ok()) << stats.status().message();
        EXPECT_EQ(stats->staleness_max, 0);
      }
      const Status left = strategy.leave();
      ASSERT_TRUE(left.ok()) << left.message();
      weights[static_cast<std::size_t>(worker)].assign(arenas.weights.begin(), arenas.weights.end());
    });
    return weights;
  }

  allreduce::DirectCollective& inside(int worker) { return *inside_[static_cast<std::size_t>(worker)]; }
  // What the shards have at the end of a run.
  const std::vector<TrainingState>& states() const { return saved_; }

 private:
  void connect_hosts() {
    static std::atomic<int> runs{0};
    const std::string run = fmt::format("aggregated-{}-{}", getpid(), runs++);
    InProcRendezvous rendezvous;
    inside_.clear();
    inside_.resize(static_cast<std::size_t>(group_.workers));
    if (!groups_.aggregated()) return;
    run_ranks(group_.workers, [&](int worker) {
      const int host = groups_.host_of(worker), lowest = groups_.pusher_for(worker);
      std::vector<int> called(static_cast<std::size_t>(hosts_[static_cast<std::size_t>(host)]));
      std::iota(called.begin(), called.end(), lowest);
      auto direct = allreduce::make_direct_collective({.run_id = run,
                                                       .group = fmt::format("host-{}", host),
                                                       .rank = worker - lowest,
                                                       .size = static_cast<int>(called.size()),
                                                       .keys = testing_support::test_keys()},
                                                      rendezvous, soon(), called);
      ASSERT_TRUE(direct.ok()) << direct.status().message();
      inside_[static_cast<std::size_t>(worker)] = std::move(*direct);
    });
  }

  std::unique_ptr<SyncStrategy> strategy_of(int worker, Transport* wire) {
    allreduce::DirectCollective* const inside = inside_[static_cast<std::size_t>(worker)].get();
    std::unique_ptr<ps::PsStrategy> servers;
    if (wire != nullptr) {
      ps::PsStrategyOptions options{.group = group_, .sharding = kSharding, .timeout = timeout};
      options.goes_on = states_ != nullptr;
      if (inside != nullptr) options.make_arena = [inside](std::size_t elements) { return inside->allocate(elements); };
      servers = std::make_unique<ps::PsStrategy>(options, *wire, clock_, nullptr);
    }
    if (inside == nullptr) return servers;
    const ps::Sharding sharding{.chunk_bytes = worker == other_chunks_of_ ? 2048u : kSharding.chunk_bytes};
    return std::make_unique<AggregatingStrategy>(
        AggregationOptions{
            .shards = 2, .sharding = sharding, .timeout = timeout, .longer_than_leader = longer_than_leader},
        *inside, std::move(servers), clock_, nullptr);
  }

  void serve(int rank, Transport& wire, std::size_t pushers) {
    const auto shard = static_cast<std::size_t>(group_.shard_of_rank(rank));
    ps::ShardServerOptions options{.group = group_,
                                   .consistency = *ps::Consistency::parse("sync"),
                                   .optimizer = {.kind = OptimizerKind::kAdam},
                                   .timeout = timeout,
                                   .hosts = groups_};
    for (int worker = 0; worker < group_.workers; ++worker) {
      options.there.push_back(groups_.pusher_for(worker) == worker);
    }
    if (states_ != nullptr) options.restored = &(*states_)[shard];
    ps::ShardServer server(options, wire, clock_);
    const Status status = server.serve();
    EXPECT_EQ(status.code(), workers_give_up ? Code::kCancelled : Code::kOk) << status.message();
    TrainingState state;
    if (server.save(state)) {
      const std::lock_guard lock(saving_);
      saved_.resize(static_cast<std::size_t>(group_.shards()));
      saved_[shard] = std::move(state);
    }
    const auto all_pushes = static_cast<std::int64_t>(kSteps * pushers);
    EXPECT_TRUE(workers_give_up || server.counters().shard.pushes % all_pushes == 0);
  }

  const ps::PsGroup group_;
  const Hosts hosts_;
  const ps::HostGroups groups_;
  const SteadyClock clock_;
  const std::vector<TrainingState>* states_ = nullptr;
  int other_chunks_of_ = -1;
  std::vector<std::unique_ptr<allreduce::DirectCollective>> inside_;
  std::mutex saving_;
  std::vector<TrainingState> saved_;
};

const Hosts kHosts[] = {{2, 2}, {3, 1, 2}, {4}, {1, 3}};

TEST(AggregatingStrategy, TrainsTheWeightsOfAPushOfEachWorkerBitForBit) {
  for (const Hosts& hosts : kHosts) {
    SCOPED_TRACE(testing::PrintToString(hosts));
    const auto flat = JobOnHosts(hosts, false).trained(), aggregated = JobOnHosts(hosts, true).trained();
    for (std::size_t worker = 0; worker < flat.size(); ++worker) {
      ASSERT_FALSE(flat[worker].empty());
      EXPECT_TRUE(flat[worker] == flat[0]);
      EXPECT_TRUE(aggregated[worker] == flat[0]) << "worker " << worker;
    }
  }
}

// 814 floats each way a step and host, by its lowest worker.
TEST(AggregatingStrategy, SendsOneGradientAndTakesOneSetOfWeightsAHost) {
  const auto bytes = static_cast<std::int64_t>(ps::small_layout().size() * sizeof(float));
  JobOnHosts({3, 2}, true).run([&](int worker, SyncStrategy& strategy, Transport* wire) {
    const ParamArenas arenas = *strategy.allocate(ps::small_layout());
    const std::vector<Range> buckets = *strategy.join();
    for (std::int64_t number = 0; number < kSteps; ++number) {
      ps::make_gradient(worker, number, arenas.gradients);
      const TransportCounters before = wire != nullptr ? wire->counters() : TransportCounters();
      const SyncStats stats = *ps::step(strategy, number, buckets.size(), 0.1);
      const bool pushes = worker == 0 || worker == 3;
      EXPECT_EQ(wire != nullptr, pushes);
      EXPECT_EQ(stats.bytes_out, pushes ? bytes : 0);
      EXPECT_EQ(stats.bytes_in, pushes ? bytes : 0);
      EXPECT_GE(stats.communication, stats.exposed_wait);
      if (wire == nullptr) continue;
      EXPECT_EQ(wire->counters().payload_bytes_out - before.payload_bytes_out, bytes);
      EXPECT_EQ(wire->counters().payload_bytes_in - before.payload_bytes_in, bytes);
    }
    EXPECT_TRUE(strategy.leave().ok());
  });
}

TEST(AggregatingStrategy, LetsAllOfAHostReadTheWeightsWhereTheyLie) {
  JobOnHosts({2, 2}, true).run([&](int worker, SyncStrategy& strategy, Transport*) {
    const ParamArenas arenas = *strategy.allocate(ps::small_layout());
    const std::vector<Range> buckets = *strategy.join();
    for (std::int64_t number = 0; number < kSteps; ++number) {
      std::ranges::fill(arenas.gradients, worker == 3 ? -4.0f : 0.0f);
      ASSERT_TRUE(ps::step(strategy, number, buckets.size(), 1).ok());
      // Adam moves a weight whose gradient stays the same by the rate in each step.
      for (const float weight : arenas.weights.first(400)) ASSERT_NEAR(weight, static_cast<float>(number + 1), 1e-3f);
    }
    EXPECT_TRUE(strategy.leave().ok());
  });
}

// Flat and aggregated jobs go on from each other's state.
TEST(AggregatingStrategy, GoesOnWhereTheShardsAre) {
  for (const bool was_aggregated : {false, true}) {
    JobOnHosts before({2, 3}, was_aggregated);
    const std::vector<std::vector<float>> there = before.trained();
    ASSERT_EQ(before.states().size(), 2u);
    std::vector<std::vector<float>> further[2];
    for (const bool aggregated : {false, true}) {
      JobOnHosts after({2, 3}, aggregated);
      after.go_on_from(before.states());
      further[aggregated] = after.trained(kSteps);
      EXPECT_FALSE(further[aggregated][0] == there[0]);
    }
    EXPECT_TRUE(further[0] == further[1]);
  }
}

TEST(AggregatingStrategy, NamesAWorkerOfTheHostThatDoesNotCome) {
  JobOnHosts job({3, 1}, true);
  job.workers_give_up = true;
  job.timeout = std::chrono::seconds(1) * testing_support::kSlowness;
  std::latch told(3);
  job.run([&](int worker, SyncStrategy& strategy, Transport*) {
    ASSERT_TRUE(strategy.allocate(ps::small_layout()).ok());
    const std::vector<Range> buckets = *strategy.join();
    if (worker == 1) return told.wait();
    const Result<SyncStats> stats = ps::step(strategy, 0, buckets.size(), 0.1);
    EXPECT_EQ(stats.status().code(), Code::kDeadlineExceeded) << stats.status().message();
    const char* const missing = worker == 3 ? "no answer from shard 0 (server 0), shard 1" : "waiting for rank 1";
    EXPECT_THAT(stats.status().message(), HasSubstr(missing));
    told.count_down();
  });
}

// Worker 2 does not push, so that no shard answers. Worker 1 begins to wait before its leader does.
TEST(AggregatingStrategy, FailsOnTheLeaderFirstWhereServersDoNotAnswer) {
  JobOnHosts job({2, 1}, true);
  job.workers_give_up = true;
  job.timeout = std::chrono::seconds(1) * testing_support::kSlowness;
  job.longer_than_leader = std::chrono::minutes(5);
  std::latch told(1);
  job.run([&](int worker, SyncStrategy& strategy, Transport*) {
    ASSERT_TRUE(strategy.allocate(ps::small_layout()).ok());
    const std::vector<Range> buckets = *strategy.join();
    if (worker == 2) return told.wait();
    strategy.begin_step({.step = 0, .learning_rate = 0.1});
    for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) strategy.gradient_ready(bucket);
    while (worker == 0 && job.inside(1).waiting_for() != 0) std::this_thread::yield();
    const Status status = strategy.finish_step().status();
    if (worker == 1) {
      EXPECT_EQ(status.code(), Code::kCancelled) << status.message();
      return;
    }
    EXPECT_EQ(status.code(), Code::kDeadlineExceeded) << status.message();
    EXPECT_THAT(status.message(), HasSubstr("no answer from shard 0 (server 0), shard 1"));
    job.inside(1).interrupt();
    told.count_down();
  });
}

TEST(AggregatingStrategy, RefusesWorkersOfOneHostThatHaveOtherChunks) {
  JobOnHosts job({2, 1}, true);
  job.workers_give_up = true;
  job.give_other_chunks(1);
  job.run([&](int worker, SyncStrategy& strategy, Transport*) {
    ASSERT_TRUE(strategy.allocate(ps::small_layout()).ok());
    const Result<std::vector<Range>> buckets = strategy.join();
    if (worker == 2) return;
    EXPECT_EQ(buckets.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(buckets.status().message(), HasSubstr(worker == 0 ? "rank 1 of this host" : "rank 0 of this host"));
  });
}

TEST(AggregatingStrategy, RefusesTables) {
  ParamLayout layout;
  layout.add_table("rows", 10, 4, {.rows_a_step = 2});
  JobOnHosts job({2}, true);
  job.workers_give_up = true;
  job.run([&](int, SyncStrategy& strategy, Transport*) {
    EXPECT_EQ(strategy.allocate(layout).status().code(), Code::kInvalidArgument);
  });
}

}  // namespace
}  // namespace syncopate::experiments
