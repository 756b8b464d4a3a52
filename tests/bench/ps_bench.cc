// Push-pull through the parameter servers: one round trip of all weights (gradients out, sgd on the server, weights
// back), by wire, number of workers and servers, and size; beside it, in the same rounds, the limit of the wire and, if
// its program is given, ps-lite. Every worker and every server is a process.
//
//   ps_bench [--wires=shm,ipc,tcp] [--peers=1,2] [--sizes=4096,65536,1048576,4194304,16777216,67108864] [--rounds=3]
//            [--consistency=async] [--chunk-bytes=N] [--connections=1] [--ps-lite=PROGRAM] [--json=FILE]
//
// --peers=2 is 2 workers x 2 servers. In each round every contender has its turn, so that a slow spell of the machine
// falls on all; shown are medians over the rounds of the median, or 95th percentile, over one worker's steps, of which
// the first tenth is warm-up. GB/s counts payload both ways of one worker.
//
// limit     tests/support/bare_wire.h: over tcp and ipc the bare ZeroMQ echo, over shm the memory itself.
// ps-lite   over tcp, since it knows no shared memory. PROGRAM WORKERS SERVERS BYTES STEPS must print the median and
//           95th percentile of a step in microseconds and the server's peak memory in bytes. Without --ps-lite, where a
//           figure was published, an estimate stands there, marked with ~: this run's bare tcp echo over the published
//           ratio of that echo to ps-lite (83/135, 90/159, 301/382, 1660/1990, 7327/9536 us; 1 worker x 1 server).
// memory    the growth of the server's peak resident memory (VmHWM) while it served. Over shm the kernel also counts
//           the gradients that it reads in the workers' memory; "theirs" is how much that was at the end, and "bar" is
//           what the rest may be: 1.3 x (its shard + optimizer state) + 32 MiB.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/os/process_memory.h"
#include "common/transport/make_transport.h"
#include "ps/client/ps_strategy.h"
#include "ps/server/shard_server.h"
#include "tests/support/bare_wire.h"
#include "tests/support/forked_ranks.h"
#include "tests/support/process_memory.h"
#include "tests/support/test_keys.h"

namespace {

using syncopate::peak_memory_bytes;
using syncopate::Status;
using syncopate::TimePoint;
using syncopate::testing_support::bare_round_trips;
using syncopate::testing_support::resident_bytes_of_peers;

struct Options {
  std::string consistency = "async";
  std::vector<std::string> wires{"shm", "ipc", "tcp"};
  std::vector<int> peers{1, 2};
  std::vector<std::size_t> sizes{4096, 65536, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
  int rounds = 3;
  std::size_t chunk_bytes = 0;  // 0: as runs take, by wire
  int connections = 1;          // over ipc and tcp
  std::string ps_lite;          // a program; empty: none
  std::string json;             // a file; empty: none
};

void exit_unless_ok(const Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "ps_bench: {}\n", status.message());
  std::_Exit(1);
}

int steps_of(std::size_t bytes) {
  return static_cast<int>(std::clamp<std::size_t>((std::size_t{512} << 20) / bytes, 20, 3000));
}

double percentile(std::vector<double> values, std::size_t percent) {
  std::sort(values.begin(), values.end());
  return values[values.size() * percent / 100];
}

// The figures of one contender: a value a round.
struct Times {
  std::vector<double> medians, tails;  // microseconds of a step

  void add(const std::vector<double>& steps) { add(percentile(steps, 50), percentile(steps, 95)); }
  void add(double median, double tail) {
    medians.push_back(median);
    tails.push_back(tail);
  }
  double median() const { return percentile(medians, 50); }
  double tail() const { return percentile(tails, 50); }
};

struct Memory {
  double peak = 0, theirs = 0;  // bytes
};

struct Case {
  Times limit, ours;
  Memory server;
};

// Microseconds of each step, without the warm-up.
std::vector<double> work(std::size_t chunk_bytes, const syncopate::ps::PsGroup& group, syncopate::Transport& transport,
                         std::size_t bytes) {
  const syncopate::SteadyClock clock;
  const int steps = steps_of(bytes);
  syncopate::ParamLayout layout;
  layout.add("weights", {static_cast<std::int64_t>(bytes / sizeof(float))});
  syncopate::ps::PsStrategy strategy({.group = group, .sharding = {.chunk_bytes = chunk_bytes}}, transport, clock,
                                     nullptr);
  exit_unless_ok(strategy.allocate(layout).status());
  const auto buckets = strategy.join();
  exit_unless_ok(buckets.status());
  std::vector<double> times;
  for (int i = 0; i < steps; ++i) {
    const TimePoint begin = clock.now();
    strategy.begin_step({.step = i, .learning_rate = 0.1});
    for (std::size_t bucket = 0; bucket < buckets->size(); ++bucket) strategy.gradient_ready(bucket);
    exit_unless_ok(strategy.finish_step().status());
    if (i >= steps / 10) times.push_back(syncopate::microseconds(clock.now() - begin));
  }
  exit_unless_ok(strategy.leave());
  return times;
}

Memory serve(const syncopate::ps::PsGroup& group, syncopate::Transport& transport, const std::string& consistency) {
  const syncopate::SteadyClock clock;
  syncopate::ps::ShardServer server(
      {.group = group, .consistency = *syncopate::ps::Consistency::parse(consistency), .optimizer = {}}, transport,
      clock);
  exit_unless_ok(server.serve());
  return {static_cast<double>(peak_memory_bytes()), static_cast<double>(resident_bytes_of_peers())};
}

void measure_ours(const Options& options, const std::string& wire, int peers, std::size_t bytes, Case& result) {
  const syncopate::ps::PsGroup group{.workers = peers, .servers = peers};
  const std::size_t usual = wire == "shm" ? 256 * 1024 : 1024 * 1024;  // experiments/config: usual_chunk_bytes
  const std::size_t chunk_bytes = options.chunk_bytes > 0 ? options.chunk_bytes : usual;
  const auto results = syncopate::testing_support::run_forked_ranks(
      group.size(), [&](int rank, syncopate::Rendezvous& rendezvous) -> std::vector<double> {
        const auto before = static_cast<double>(peak_memory_bytes());
        const syncopate::TransportOptions endpoint{.run_id = fmt::format("bench-{}", getppid()),
                                                   .group = "ps",
                                                   .rank = rank,
                                                   .size = group.size(),
                                                   .keys = syncopate::testing_support::test_keys(),
                                                   .connections = options.connections};
        auto transport = syncopate::make_transport(*syncopate::parse_transport_kind(wire), endpoint, rendezvous,
                                                   syncopate::SteadyClock().now() + std::chrono::seconds(30));
        exit_unless_ok(transport.status());
        if (group.is_worker(rank)) return work(chunk_bytes, group, **transport, bytes);
        const Memory memory = serve(group, **transport, options.consistency);
        return {memory.peak - before, memory.theirs};
      });
  result.ours.add(results[0]);
  const std::vector<double>& server = results[static_cast<std::size_t>(group.rank_of_shard(0))];
  if (server[0] > result.server.peak) result.server = {server[0], server[1]};
}

void measure_ps_lite(const Options& options, int peers, std::size_t bytes, Times& times) {
  const std::string command = fmt::format("{0} {1} {1} {2} {3}", options.ps_lite, peers, bytes, steps_of(bytes));
  FILE* const output = popen(command.c_str(), "r");
  double median = 0, tail = 0;
  const int had = output == nullptr ? 0 : fscanf(output, "%lf %lf", &median, &tail);
  if (output != nullptr) pclose(output);
  if (had != 2) exit_unless_ok(Status(syncopate::Code::kInternal, "failed: " + command));
  times.add(median, tail);
}

// The bare tcp echo over ps-lite, published for 1 worker x 1 server on a machine of 2 cores.
std::optional<double> published_ratio(int peers, std::size_t bytes) {
  static const std::map<std::size_t, double> kRatios{{4096, 83.0 / 135},
                                                     {65536, 90.0 / 159},
                                                     {1 << 20, 301.0 / 382},
                                                     {4 << 20, 1660.0 / 1990},
                                                     {16 << 20, 7327.0 / 9536}};
  const auto found = kRatios.find(bytes);
  return peers == 1 && found != kRatios.end() ? std::optional(found->second) : std::nullopt;
}

struct Bar {
  const char* of = "";  // what our time is compared with
  double least = 0;     // its time over ours
};

// What 1 worker x 1 server should reach.
std::optional<Bar> bar_of(const std::string& wire, int peers, std::size_t bytes) {
  if (peers != 1) return std::nullopt;
  if (wire == "shm") return Bar{"ps-lite", bytes <= 65536 ? 8.0 : 4.0};
  if (wire != "tcp") return std::nullopt;
  const std::optional<double> published = published_ratio(peers, bytes);
  return Bar{"limit", published && bytes <= 65536 ? std::max(0.85, 1.4 * *published) : 0.85};
}

double mib(double bytes) { return bytes / (1 << 20); }

void print_head() {
  fmt::print("{:>4} {:>6} {:>9} {:>10} {:>10} {:>10} {:>6} {:>7} {:>10} {:>8}  {:<20} {:>10} {:>7} {:>7}\n", "wire",
             "W x K", "bytes", "limit us", "ours us", "p95 us", "GB/s", "limit/", "ps-lite us", "ps-lite/", "bar",
             "memory MiB", "theirs", "bar");
}

// Prints the line of a case, and returns it for the record. `published` says that `ps_lite` is an estimate.
nlohmann::json report(const std::string& wire, int peers, std::size_t bytes, const Case& result,
                      std::optional<double> ps_lite, bool published) {
  const double ours = result.ours.median();
  const double to_limit = result.limit.median() / ours, to_ps_lite = ps_lite.value_or(0) / ours;
  const double rate = 2e-3 * static_cast<double>(bytes) / ours;
  const double memory_bar = 1.3 * static_cast<double>(bytes) / peers + (32 << 20);
  const std::optional<Bar> bar = bar_of(wire, peers, bytes);
  nlohmann::json record{{"wire", wire},
                        {"workers", peers},
                        {"servers", peers},
                        {"bytes", bytes},
                        {"limit_us", result.limit.median()},
                        {"ours_us", ours},
                        {"ours_p95_us", result.ours.tail()},
                        {"limit_over_ours", to_limit},
                        {"gigabytes_per_s", rate},
                        {"server_memory_bytes", result.server.peak},
                        {"server_memory_of_workers_bytes", result.server.theirs},
                        {"server_memory_bar_bytes", memory_bar}};
  std::string bar_text = "-", ps_lite_text = "-", ps_lite_ratio = "-";
  if (ps_lite) {
    ps_lite_text = fmt::format("{}{:.1f}", published ? "~" : "", *ps_lite);
    ps_lite_ratio = fmt::format("{:.2f}", to_ps_lite);
    record["ps_lite_us"] = *ps_lite;
    record["ps_lite_is_published_ratio"] = published;
    record["ps_lite_over_ours"] = to_ps_lite;
  }
  const bool to_be_had = bar && (bar->of == std::string("limit") || ps_lite);
  if (to_be_had) {
    const bool met = (bar->of == std::string("limit") ? to_limit : to_ps_lite) >= bar->least;
    bar_text = fmt::format("{}/ >= {:.2f} {}", bar->of, bar->least, met ? "met" : "MISSED");
    record["bar"] = {{"of", bar->of}, {"least", bar->least}, {"met", met}};
  }
  fmt::print(
      "{:>4} {:>6} {:>9} {:>10.1f} {:>10.1f} {:>10.1f} {:>6.2f} {:>7.2f} {:>10} {:>8}  {:<20} {:>10.1f} {:>7.1f} "
      "{:>7.1f}\n",
      wire, fmt::format("{0} x {0}", peers), bytes, result.limit.median(), ours, result.ours.tail(), rate, to_limit,
      ps_lite_text, ps_lite_ratio, bar_text, mib(result.server.peak), mib(result.server.theirs), mib(memory_bar));
  std::fflush(stdout);
  return record;
}

// All wires of one size in the same rounds.
void run(const Options& options, int peers, std::size_t bytes, nlohmann::json& records) {
  std::map<std::string, Case> cases;
  Times echo, ps_lite;
  for (int round = 0; round < options.rounds; ++round) {
    for (const std::string& wire : options.wires) {
      Case& result = cases[wire];
      result.limit.add(bare_round_trips({wire, peers, bytes, steps_of(bytes)}));
      measure_ours(options, wire, peers, bytes, result);
    }
    if (!options.ps_lite.empty()) {
      measure_ps_lite(options, peers, bytes, ps_lite);
    } else if (published_ratio(peers, bytes)) {
      echo.add(bare_round_trips({"tcp", peers, bytes, steps_of(bytes)}));
    }
  }
  std::optional<double> ps_lite_us;
  const bool measured = !ps_lite.medians.empty();
  if (measured) ps_lite_us = ps_lite.median();
  if (!echo.medians.empty()) ps_lite_us = echo.median() / *published_ratio(peers, bytes);
  for (const std::string& wire : options.wires) {
    records.push_back(report(wire, peers, bytes, cases[wire], ps_lite_us, !measured));
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("push-pull through the parameter servers, beside the limit of the wire");
  Options options;
  app.add_option("--consistency", options.consistency, "sync, bounded:k or async");
  app.add_option("--wires", options.wires, "shm, ipc, tcp")->delimiter(',');
  app.add_option("--peers", options.peers, "numbers of workers, and of servers")->delimiter(',');
  app.add_option("--sizes", options.sizes, "bytes")->delimiter(',');
  app.add_option("--rounds", options.rounds, "turns of each contender");
  app.add_option("--chunk-bytes", options.chunk_bytes, "the most that is pushed, applied and pulled as one")
      ->check(CLI::Range(std::size_t{64}, std::size_t{1} << 30));
  app.add_option("--connections", options.connections, "to each peer, over ipc and tcp")
      ->check(CLI::Range(1, syncopate::kMaxConnections));
  app.add_option("--ps-lite", options.ps_lite, "a program that measures ps-lite");
  app.add_option("--json", options.json, "a file for the figures");
  CLI11_PARSE(app, argc, argv);
  exit_unless_ok(syncopate::ps::Consistency::parse(options.consistency).status());
  for (const std::string& wire : options.wires) exit_unless_ok(syncopate::parse_transport_kind(wire).status());
  fmt::print("push-pull, {}, {} rounds, {} connection{} a peer\n", options.consistency, options.rounds,
             options.connections, options.connections == 1 ? "" : "s");
  print_head();
  nlohmann::json records = nlohmann::json::array();
  for (const int peers : options.peers) {
    for (const std::size_t bytes : options.sizes) run(options, peers, bytes, records);
  }
  if (!options.json.empty()) std::ofstream(options.json) << records.dump(2) << '\n';
}
