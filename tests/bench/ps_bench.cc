// Push-pull through the parameter servers: time of one round trip of all weights (gradients out, sgd on the server,
// weights back), by size, wire and number of workers and servers. Every worker and every shard is a thread here.
//
//   ps_bench [CONSISTENCY]     sync | bounded:k | async (default)
//
// One warm-up tenth is left out; the median and the 95th percentile are over all workers' steps. GB/s counts payload
// both ways of one worker at the median.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "tests/ps/ps_job.h"

namespace {

using namespace std::chrono_literals;
using syncopate::Duration;
using syncopate::Status;

void exit_unless_ok(const Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "ps_bench: {}\n", status.message());
  std::exit(1);
}

// Times of all steps of all workers but the first tenth, ascending.
std::vector<Duration> measure(const std::string& wire, const std::string& consistency, int peers, std::size_t bytes) {
  const std::int64_t steps = std::clamp<std::int64_t>(static_cast<std::int64_t>((256u << 20) / bytes), 20, 2000);
  syncopate::ParamLayout layout;
  layout.add("weights", {static_cast<std::int64_t>(bytes / sizeof(float))});
  syncopate::ps::PsJob job({.group = {.workers = peers, .servers = peers}, .consistency = consistency, .wire = wire});
  std::mutex mutex;
  std::vector<Duration> times;
  job.run([&](int, syncopate::ps::PsStrategy& strategy) {
    const syncopate::SteadyClock clock;
    exit_unless_ok(strategy.allocate(layout).status());
    const auto buckets = strategy.join();
    exit_unless_ok(buckets.status());
    std::vector<Duration> own;
    for (std::int64_t i = 0; i < steps; ++i) {
      const syncopate::TimePoint begin = clock.now();
      exit_unless_ok(syncopate::ps::step(strategy, i, buckets->size(), 0.1).status());
      if (i >= steps / 10) own.push_back(clock.now() - begin);
    }
    exit_unless_ok(strategy.leave());
    const std::lock_guard lock(mutex);
    times.insert(times.end(), own.begin(), own.end());
  });
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string consistency = argc > 1 ? argv[1] : "async";
  exit_unless_ok(syncopate::ps::Consistency::parse(consistency).status());
  fmt::print("push-pull, {}\n{:>4} {:>17} {:>10} {:>12} {:>12} {:>8}\n", consistency, "wire", "workers x servers",
             "bytes", "median us", "p95 us", "GB/s");
  for (const std::string wire : {"shm", "ipc", "tcp"}) {
    for (const int peers : {1, 2}) {
      for (std::size_t bytes = 4096; bytes <= (std::size_t{64} << 20); bytes *= 4) {
        const std::vector<Duration> times = measure(wire, consistency, peers, bytes);
        const Duration median = times[times.size() / 2];
        fmt::print("{:>4} {:>17} {:>10} {:>12.1f} {:>12.1f} {:>8.2f}\n", wire, fmt::format("{0} x {0}", peers), bytes,
                   syncopate::microseconds(median), syncopate::microseconds(times[times.size() * 95 / 100]),
                   2e-9 * static_cast<double>(bytes) / syncopate::seconds(median));
      }
    }
  }
}
