// The mean over GPUs, of float32 in place, by size and number of ranks: our collective over NCCL, its calls given by a
// thread of NCCL's (as a run does by default) and directly beside each other.
//
//   nccl_bench [--ranks=2] [--share-gpu] [--rounds=5] [--seconds=0.2] [--sizes=4096,65536,1048576,16777216,67108864]
//
// Ranks are processes, each on the GPU of its number, or all on the first one (--share-gpu: by sockets on this host; it
// shows that it works, and how slowly). Times are of operations given to a stream one behind another, between two
// events on it: of the slowest rank, and the median of the rounds. `host` is what the calling thread spends on one
// operation. algbw is bytes by time, busbw algbw·2(n-1)/n, as nccl-tests define them (doc/PERFORMANCE.md there).
//
// Each size is first checked: ranks 0 to n-1 bring n·(rank + 1), of which the mean is n·(n + 1)/2, exactly where n is a
// power of two (NCCL multiplies by 1/n before it sums) and else to rounding.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "allreduce/nccl/cuda/nccl_collective.h"
#include "allreduce/nccl/nccl_environment.h"
#include "common/device/cuda/cuda_device.h"
#include "tests/support/forked_ranks.h"

namespace {

using syncopate::Device;
using syncopate::Duration;
using syncopate::Event;
using syncopate::Status;
using syncopate::Stream;
using syncopate::TensorSpan;
using syncopate::TimePoint;
using syncopate::allreduce::DeviceCollective;
using syncopate::allreduce::Reduction;

struct Options {
  std::vector<int> ranks{2};
  std::vector<std::size_t> sizes{4096, 65536, 1 << 20, 16 << 20, 64 << 20};
  int rounds = 5;
  double seconds = 0.2;
  bool share_gpu = false;
};

// The seconds of one operation.
struct Times {
  double device = 0;
  double host = 0;
};

void exit_unless_ok(const Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "nccl_bench: {}\n", status.message());
  std::_Exit(1);
}

template <typename T>
T value_or_exit(syncopate::Result<T> result) {
  exit_unless_ok(result.status());
  return std::move(*result);
}

const syncopate::SteadyClock kClock{};

class Rank {
 public:
  Rank(Device& device, DeviceCollective& collective)
      : device_(device),
        collective_(collective),
        stream_(value_or_exit(device.make_stream())),
        begin_(value_or_exit(device.make_event())),
        end_(value_or_exit(device.make_event())),
        count_(value_or_exit(allocate_floats(device, 1))) {}

  Times measure(std::span<float> buffer, const Options& options) {
    check(buffer);
    timed(buffer, 2);
    const int operations = agree(options.seconds / timed(buffer, 3).device);
    std::vector<Times> rounds;
    for (int round = 0; round < options.rounds; ++round) rounds.push_back(timed(buffer, operations));
    std::sort(rounds.begin(), rounds.end(), [](const Times& a, const Times& b) { return a.device < b.device; });
    return rounds[rounds.size() / 2];
  }

 private:
  Status mean(TensorSpan buffer) { return collective_.all_reduce({&buffer, 1}, Reduction::kMean, *stream_); }

  Times timed(std::span<float> buffer, int operations) {
    barrier();
    stream_->record(*begin_);
    const TimePoint before = kClock.now();
    for (int i = 0; i < operations; ++i) exit_unless_ok(mean(buffer));
    const TimePoint after = kClock.now();
    wait();
    return {.device = syncopate::seconds(device_.between(*begin_, *end_)) / operations,
            .host = syncopate::seconds(after - before) / operations};
  }

  void check(std::span<float> buffer) {
    const auto size = static_cast<float>(collective_.size());
    std::vector<float> host(buffer.size(), size * static_cast<float>(collective_.rank() + 1));
    stream_->copy_to_device(std::as_bytes(std::span(host)), std::as_writable_bytes(buffer));
    exit_unless_ok(mean(buffer));
    stream_->copy_to_host(std::as_bytes(buffer), std::as_writable_bytes(std::span(host)));
    wait();
    const float expected = size * (size + 1) / 2;
    const bool exact = (collective_.size() & (collective_.size() - 1)) == 0;
    for (const float value : host) {
      if (std::abs(value - expected) <= (exact ? 0.0f : 1e-6f * expected)) continue;
      exit_unless_ok(Status(syncopate::Code::kInternal, fmt::format("a mean is {}, not {}", value, expected)));
    }
  }

  // Rank 0's number, in the range that is sensible.
  int agree(double operations) {
    float count = static_cast<float>(std::clamp(operations, 3.0, 20000.0));
    const std::span<float> host(&count, 1);
    stream_->copy_to_device(std::as_bytes(host), std::as_writable_bytes(count_));
    exit_unless_ok(collective_.broadcast(count_, 0, *stream_));
    stream_->copy_to_host(std::as_bytes(count_), std::as_writable_bytes(host));
    wait();
    return static_cast<int>(count);
  }

  void barrier() {
    exit_unless_ok(mean(count_));
    wait();
  }

  void wait() {
    stream_->record(*end_);
    exit_unless_ok(collective_.wait(*end_, kClock.now() + std::chrono::seconds(60)));
  }

  Device& device_;
  DeviceCollective& collective_;
  const std::unique_ptr<Stream> stream_;
  const std::unique_ptr<Event> begin_;
  const std::unique_ptr<Event> end_;
  const std::span<float> count_;
};

// Returns for each size the time on the device and that on the host. Every rank calls it, in a process of its own.
std::vector<double> run_rank(int rank, int size, bool direct, syncopate::Rendezvous& rendezvous,
                             const Options& options) {
  for (const auto& [name, value] : syncopate::allreduce::nccl_environment(
           {.rank = rank, .shares_gpu = options.share_gpu, .direct_calls = direct})) {
    setenv(name.c_str(), value.c_str(), /*overwrite=*/0);  // who sets a variable means to try it
  }
  const auto device = value_or_exit(syncopate::open_cuda_device(options.share_gpu ? 0 : rank));
  const auto collective = value_or_exit(
      syncopate::allreduce::connect_nccl({.rank = rank, .size = size, .direct_calls = direct, .log_file = {}}, *device,
                                         rendezvous, kClock, kClock.now() + std::chrono::seconds(60)));
  if (rank == 0 && !direct) fmt::print("\n{}, {} ranks, {}\n", device->description(), size, collective->description());
  std::fflush(stdout);
  Rank self(*device, *collective);
  const std::size_t largest = *std::max_element(options.sizes.begin(), options.sizes.end());
  const std::span<float> memory = value_or_exit(allocate_floats(*device, largest / sizeof(float)));
  std::vector<double> figures;
  for (const std::size_t bytes : options.sizes) {
    const Times times = self.measure(memory.first(bytes / sizeof(float)), options);
    figures.insert(figures.end(), {times.device, times.host});
  }
  return figures;
}

// Returns the times of the slowest rank, by size.
std::vector<Times> measure(int size, bool direct, const Options& options) {
  const auto ranks = syncopate::testing_support::run_forked_ranks(
      size,
      [&](int rank, syncopate::Rendezvous& rendezvous) { return run_rank(rank, size, direct, rendezvous, options); });
  std::vector<Times> slowest(options.sizes.size());
  for (const std::vector<double>& figures : ranks) {
    for (std::size_t i = 0; i < slowest.size(); ++i) {
      slowest[i].device = std::max(slowest[i].device, figures[2 * i]);
      slowest[i].host = std::max(slowest[i].host, figures[2 * i + 1]);
    }
  }
  return slowest;
}

void run(int size, const Options& options) {
  const std::vector<Times> threaded = measure(size, /*direct=*/false, options);
  const std::vector<Times> direct = measure(size, /*direct=*/true, options);
  fmt::print("{:>10}{:>12}{:>10}{:>14}{:>14}{:>14}{:>12}{:>14}{:>10}\n", "bytes", "us", "host us", "algbw GB/s",
             "busbw GB/s", "direct: us", "host us", "busbw GB/s", "ratio");
  for (std::size_t i = 0; i < options.sizes.size(); ++i) {
    const auto algbw = [&](const Times& times) { return static_cast<double>(options.sizes[i]) / times.device / 1e9; };
    const double factor = 2.0 * (size - 1) / size;
    fmt::print("{:>10}{:>12.1f}{:>10.1f}{:>14.2f}{:>14.2f}{:>14.1f}{:>12.1f}{:>14.2f}{:>9.2f}x\n", options.sizes[i],
               threaded[i].device * 1e6, threaded[i].host * 1e6, algbw(threaded[i]), factor * algbw(threaded[i]),
               direct[i].device * 1e6, direct[i].host * 1e6, factor * algbw(direct[i]),
               threaded[i].device / direct[i].device);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("the mean over GPUs with NCCL");
  Options options;
  app.add_option("--ranks", options.ranks, "numbers of ranks")->delimiter(',');
  app.add_option("--sizes", options.sizes, "bytes, at least 4")->delimiter(',')->check(CLI::Range(4, 1 << 30));
  app.add_option("--rounds", options.rounds, "turns, of which the median is shown")->check(CLI::PositiveNumber);
  app.add_option("--seconds", options.seconds, "of each size and turn")->check(CLI::PositiveNumber);
  app.add_flag("--share-gpu", options.share_gpu, "all ranks on the first GPU");
  CLI11_PARSE(app, argc, argv);
  for (const int size : options.ranks) run(size, options);
}
