// Push-pull through the parameter servers: one round trip of all weights (gradients out, sgd on the server, weights
// back), by size, wire, and number of workers and servers. Every worker and every server is a process.
//
//   ps_bench [--consistency=async] [--wires=shm,ipc,tcp] [--sizes=4096,65536,1048576,4194304,16777216,67108864]
//   [--rounds=3]
//
// For each case: the median over the rounds of the median over a worker's steps, and the same for the 95th percentile;
// the first tenth of the steps is warm-up. GB/s counts payload both ways of one worker at the median.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "common/transport/make_transport.h"
#include "ps/ps_strategy.h"
#include "ps/shard_server.h"
#include "tests/support/forked_ranks.h"

namespace {

using syncopate::Status;
using syncopate::TimePoint;

struct Options {
  std::string consistency = "async";
  std::vector<std::string> wires{"shm", "ipc", "tcp"};
  std::vector<std::size_t> sizes{4096, 65536, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
  int rounds = 3;
};

void exit_unless_ok(const Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "ps_bench: {}\n", status.message());
  std::_Exit(1);
}

// Microseconds of each step, without the warm-up.
std::vector<double> work(const syncopate::ps::PsGroup& group, syncopate::Transport& transport, std::size_t bytes) {
  const syncopate::SteadyClock clock;
  const auto steps = std::clamp<std::int64_t>(static_cast<std::int64_t>((512u << 20) / bytes), 20, 3000);
  syncopate::ParamLayout layout;
  layout.add("weights", {static_cast<std::int64_t>(bytes / sizeof(float))});
  syncopate::ps::PsStrategy strategy({.group = group}, transport, clock, nullptr);
  exit_unless_ok(strategy.allocate(layout).status());
  const auto buckets = strategy.join();
  exit_unless_ok(buckets.status());
  std::vector<double> times;
  for (std::int64_t i = 0; i < steps; ++i) {
    const TimePoint begin = clock.now();
    strategy.begin_step({.step = i, .learning_rate = 0.1});
    for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) strategy.gradient_ready(bucket);
    exit_unless_ok(strategy.finish_step().status());
    if (i >= steps / 10) times.push_back(syncopate::microseconds(clock.now() - begin));
  }
  exit_unless_ok(strategy.leave());
  return times;
}

void serve(const syncopate::ps::PsGroup& group, syncopate::Transport& transport, const std::string& consistency) {
  const syncopate::SteadyClock clock;
  syncopate::ps::ShardServer server(
      {.group = group, .consistency = *syncopate::ps::Consistency::parse(consistency), .optimizer = {}}, transport,
      clock);
  exit_unless_ok(server.serve());
}

// Worker 0's times, ascending.
std::vector<double> measure(const Options& options, const std::string& wire, int peers, std::size_t bytes) {
  const syncopate::ps::PsGroup group{.workers = peers, .servers = peers};
  auto times = syncopate::testing_support::run_forked_ranks(
      group.size(), [&](int rank, syncopate::Rendezvous& rendezvous) -> std::vector<double> {
        const syncopate::TransportOptions endpoint{
            .run_id = fmt::format("bench-{}", getppid()), .group = "ps", .rank = rank, .size = group.size()};
        auto transport = syncopate::make_transport(*syncopate::parse_transport_kind(wire), endpoint, rendezvous,
                                                   syncopate::SteadyClock().now() + std::chrono::seconds(30));
        exit_unless_ok(transport.status());
        if (group.is_worker(rank)) return work(group, **transport, bytes);
        serve(group, **transport, options.consistency);
        return {};
      })[0];
  std::sort(times.begin(), times.end());
  return times;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("push-pull through the parameter servers");
  Options options;
  app.add_option("--consistency", options.consistency, "sync, bounded:k or async");
  app.add_option("--wires", options.wires, "shm, ipc, tcp")->delimiter(',');
  app.add_option("--sizes", options.sizes, "bytes")->delimiter(',');
  app.add_option("--rounds", options.rounds, "of each case");
  CLI11_PARSE(app, argc, argv);
  exit_unless_ok(syncopate::ps::Consistency::parse(options.consistency).status());
  fmt::print("push-pull, {}\n{:>4} {:>17} {:>10} {:>12} {:>12} {:>8}\n", options.consistency, "wire",
             "workers x servers", "bytes", "median us", "p95 us", "GB/s");
  for (const std::string& wire : options.wires) {
    for (const int peers : {1, 2}) {
      for (const std::size_t bytes : options.sizes) {
        std::vector<double> medians, tails;
        for (int round = 0; round < options.rounds; ++round) {
          const std::vector<double> times = measure(options, wire, peers, bytes);
          medians.push_back(times[times.size() / 2]);
          tails.push_back(times[times.size() * 95 / 100]);
        }
        fmt::print("{:>4} {:>17} {:>10} {:>12.1f} {:>12.1f} {:>8.2f}\n", wire, fmt::format("{0} x {0}", peers), bytes,
                   median(medians), median(tails), 2e-3 * static_cast<double>(bytes) / median(medians));
        std::fflush(stdout);
      }
    }
  }
}
