// What a standby costs, and what saving a shard does: milliseconds of a worker's step with one home of each shard and
// with two, in the same rounds, over shared memory; and the GB/s at which a shard's state is copied, the first time and
// into memory that is used again. Every worker and every home is a process.
//
//   standby_bench [--workers=2] [--bytes=4194304] [--rounds=3] [--consistencies=async,sync]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "common/transport/make_transport.h"
#include "ps/client/ps_strategy.h"
#include "ps/server/shard_server.h"
#include "tests/support/forked_ranks.h"
#include "tests/support/test_keys.h"

namespace {

using syncopate::Status;
using syncopate::SteadyClock;
using syncopate::ps::PsGroup;
using syncopate::ps::ReplicaRole;

struct Options {
  int workers = 2;
  std::size_t bytes = 4 << 20;
  int rounds = 3;
  std::vector<std::string> consistencies{"async", "sync"};
};

void exit_unless_ok(const Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "standby_bench: {}\n", status.message());
  std::_Exit(1);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

int steps_of(std::size_t bytes) {
  return static_cast<int>(std::clamp<std::size_t>((std::size_t{512} << 20) / bytes, 20, 500));
}

// The median of a step's milliseconds.
double work(const PsGroup& group, syncopate::Transport& transport, std::size_t bytes) {
  const SteadyClock clock;
  syncopate::ParamLayout layout;
  layout.add("weights", {static_cast<std::int64_t>(bytes / sizeof(float))});
  syncopate::ps::PsStrategy strategy({.group = group}, transport, clock, nullptr);
  exit_unless_ok(strategy.allocate(layout).status());
  const auto buckets = strategy.join();
  exit_unless_ok(buckets.status());
  std::vector<double> times;
  for (int i = 0; i < steps_of(bytes); ++i) {
    const syncopate::TimePoint begin = clock.now();
    strategy.begin_step({.step = i, .learning_rate = 0.1});
    for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) strategy.gradient_ready(bucket);
    exit_unless_ok(strategy.finish_step().status());
    times.push_back(syncopate::microseconds(clock.now() - begin) / 1000);
  }
  exit_unless_ok(strategy.leave());
  return median(times);
}

// GB/s of the first copy of the state, and of the best of some later ones.
std::vector<double> serve(const PsGroup& group, syncopate::Transport& transport, const std::string& consistency) {
  const SteadyClock clock;
  const ReplicaRole role = group.replicas == 0                          ? ReplicaRole::kAlone
                           : transport.rank() == group.rank_of_shard(0) ? ReplicaRole::kHead
                                                                        : ReplicaRole::kTail;
  syncopate::ps::ShardServer server(
      {.group = group, .consistency = *syncopate::ps::Consistency::parse(consistency), .optimizer = {}, .role = role},
      transport, clock);
  exit_unless_ok(server.serve());
  syncopate::TrainingState state;
  std::vector<double> rates;
  for (int i = 0; i < 6; ++i) {
    const syncopate::TimePoint begin = clock.now();
    server.save(state);
    rates.push_back(static_cast<double>(state.bytes()) / syncopate::microseconds(clock.now() - begin) / 1000);
  }
  return {rates[0], *std::max_element(rates.begin() + 1, rates.end())};
}

// The first worker's figure, and those of the first home.
std::vector<double> measure(const Options& options, const std::string& consistency, int replicas) {
  const PsGroup group{.workers = options.workers, .servers = 1, .shards_per_server = 1, .replicas = replicas};
  const auto results = syncopate::testing_support::run_forked_ranks(
      group.size(), [&](int rank, syncopate::Rendezvous& rendezvous) -> std::vector<double> {
        const syncopate::TransportOptions endpoint{.run_id = fmt::format("bench-{}", getppid()),
                                                   .group = "ps",
                                                   .rank = rank,
                                                   .size = group.size(),
                                                   .keys = syncopate::testing_support::test_keys()};
        auto transport = syncopate::make_transport(*syncopate::parse_transport_kind("shm"), endpoint, rendezvous,
                                                   SteadyClock().now() + std::chrono::seconds(30));
        exit_unless_ok(transport.status());
        if (group.is_worker(rank)) return {work(group, **transport, options.bytes)};
        return serve(group, **transport, consistency);
      });
  const std::vector<double>& home = results[static_cast<std::size_t>(group.rank_of_shard(0))];
  return {results[0][0], home[0], home[1]};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("what a standby of each shard costs");
  Options options;
  app.add_option("--workers", options.workers, "of one server")->check(CLI::Range(1, 64));
  app.add_option("--bytes", options.bytes, "of weights");
  app.add_option("--rounds", options.rounds, "turns of each");
  app.add_option("--consistencies", options.consistencies, "sync, bounded:k, async")->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  for (const std::string& consistency : options.consistencies) {
    exit_unless_ok(syncopate::ps::Consistency::parse(consistency).status());
    std::vector<double> alone, with_standby, first, again;
    for (int round = 0; round < options.rounds; ++round) {
      const std::vector<double> one = measure(options, consistency, 0);
      const std::vector<double> two = measure(options, consistency, 1);
      alone.push_back(one[0]);
      with_standby.push_back(two[0]);
      first.push_back(one[1]);
      again.push_back(one[2]);
    }
    fmt::print(
        "{}, {} workers, {} bytes: {:.2f} ms a step, with a standby {:.2f} ms ({:.2f}x); saved at {:.1f} GB/s, "
        "again at {:.1f} GB/s\n",
        consistency, options.workers, options.bytes, median(alone), median(with_standby),
        median(with_standby) / median(alone), median(first), median(again));
  }
}
