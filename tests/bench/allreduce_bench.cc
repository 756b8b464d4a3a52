// Allreduce of float32 in place, by size and number of ranks: our ring over shared memory and tcp, and Open MPI's
// MPI_Allreduce beside it in the same run (shared memory with its defaults, and tcp).
//
//   allreduce_bench [--ranks=2,4] [--rounds=5] [--seconds=0.2] [--sizes=4096,65536,1048576,16777216,67108864]
//
// Ranks are processes. In each round every contender has its turn, so that a slow spell of the machine falls on all;
// shown are the medians over the rounds of the mean time of one operation, and ratios (above 1: ours is faster). busbw
// is algbw·2(n-1)/n, as nccl-tests define it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "allreduce/mpi_collective.h"
#include "allreduce/schedule_collective.h"
#include "common/transport/make_transport.h"
#include "tests/support/forked_ranks.h"

namespace {

using syncopate::Result;
using syncopate::Status;
using syncopate::TimePoint;
using syncopate::allreduce::Collective;

struct Options {
  std::vector<int> ranks{2, 4};
  std::vector<std::size_t> sizes{4096, 65536, 1 << 20, 16 << 20, 64 << 20};
  int rounds = 5;
  double seconds = 0.2;
};

void exit_unless_ok(const Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "allreduce_bench: {}\n", status.message());
  std::_Exit(1);
}

// Mean seconds of one operation, for each size. Called by every rank.
std::vector<double> measure(Collective& collective, const Options& options) {
  const syncopate::SteadyClock clock;
  const auto deadline = [&] { return clock.now() + std::chrono::seconds(60); };
  std::vector<double> means;
  for (const std::size_t bytes : options.sizes) {
    Result<std::span<float>> buffer = collective.allocate(bytes / sizeof(float));
    Result<std::span<float>> count = collective.allocate(16);
    exit_unless_ok(buffer.status());
    exit_unless_ok(count.status());
    const auto timed = [&](int operations) {
      exit_unless_ok(collective.barrier(deadline()));
      const TimePoint begin = clock.now();
      for (int i = 0; i < operations; ++i) exit_unless_ok(collective.all_reduce(*buffer, deadline()));
      return syncopate::seconds(clock.now() - begin) / operations;
    };
    timed(2);
    // Zeros stay zeros under repeated sums; the check has inputs whose sum is known exactly.
    std::fill(buffer->begin(), buffer->end(), static_cast<float>(collective.rank() + 1));
    exit_unless_ok(collective.all_reduce(*buffer, deadline()));
    const auto expected = static_cast<float>(collective.size() * (collective.size() + 1) / 2);
    if (buffer->front() != expected || buffer->back() != expected) {
      exit_unless_ok(Status(syncopate::Code::kInternal, "a wrong sum"));
    }
    std::fill(buffer->begin(), buffer->end(), 0.0f);
    (*count)[0] = static_cast<float>(std::clamp(options.seconds / timed(3), 3.0, 20000.0));
    exit_unless_ok(collective.broadcast(*count, 0, deadline()));
    means.push_back(timed(static_cast<int>((*count)[0])));
  }
  return means;
}

std::vector<double> measure_ring(syncopate::TransportKind wire, int size, const Options& options) {
  return syncopate::testing_support::run_forked_ranks(size, [&](int rank, syncopate::Rendezvous& rendezvous) {
    const syncopate::TransportOptions endpoint{
        .run_id = fmt::format("bench-{}", getppid()), .group = "ring", .rank = rank, .size = size};
    auto transport = syncopate::make_transport(wire, endpoint, rendezvous,
                                               syncopate::SteadyClock().now() + std::chrono::seconds(30));
    exit_unless_ok(transport.status());
    return measure(*syncopate::allreduce::make_schedule_collective(**transport), options);
  })[0];
}

// This very program under mpirun, which prints its means.
std::vector<double> measure_mpi(bool over_tcp, int size, const Options& options) {
  std::string command = fmt::format(
      "mpirun --oversubscribe --bind-to none {} {} -n {} {} --as-mpi-rank --seconds={} --sizes={}",
      geteuid() == 0 ? "--allow-run-as-root" : "", over_tcp ? "--mca btl tcp,self" : "", size,
      std::filesystem::read_symlink("/proc/self/exe").string(), options.seconds, fmt::join(options.sizes, ","));
  FILE* output = popen((command + " 2>/dev/null").c_str(), "r");
  std::vector<double> means(options.sizes.size());
  for (double& mean : means) {
    if (fscanf(output, "%lf", &mean) != 1) exit_unless_ok(Status(syncopate::Code::kInternal, "failed: " + command));
  }
  pclose(output);
  return means;
}

int run_as_mpi_rank(const Options& options) {
  const int rank = std::atoi(std::getenv("OMPI_COMM_WORLD_RANK"));
  auto mpi = syncopate::allreduce::make_mpi_collective(rank, std::atoi(std::getenv("OMPI_COMM_WORLD_SIZE")));
  exit_unless_ok(mpi.status());
  const std::vector<double> means = measure(**mpi, options);
  if (rank == 0) fmt::print("{}\n", fmt::join(means, " "));
  return 0;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void run(int size, const Options& options) {
  const std::vector<std::string> names{"ring shm", "ring tcp", "ompi shm", "ompi tcp"};
  std::map<std::string, std::vector<std::vector<double>>> means;  // by contender: rounds of sizes
  for (int round = 0; round < options.rounds; ++round) {
    means["ring shm"].push_back(measure_ring(syncopate::TransportKind::kShm, size, options));
    means["ompi shm"].push_back(measure_mpi(false, size, options));
    means["ring tcp"].push_back(measure_ring(syncopate::TransportKind::kTcp, size, options));
    means["ompi tcp"].push_back(measure_mpi(true, size, options));
  }
  fmt::print("\n{} ranks\n{:>10}", size, "bytes");
  for (const std::string& name : names) fmt::print("{:>14}", name + " us");
  fmt::print("{:>16}{:>12}{:>12}\n", "busbw shm GB/s", "shm ratio", "tcp ratio");
  for (std::size_t i = 0; i < options.sizes.size(); ++i) {
    std::map<std::string, double> medians;
    fmt::print("{:>10}", options.sizes[i]);
    for (const std::string& name : names) {
      std::vector<double> values;
      for (const auto& round : means[name]) values.push_back(round[i]);
      medians[name] = median(values);
      fmt::print("{:>14.1f}", medians[name] * 1e6);
    }
    const double busbw = 2.0 * (size - 1) / size * static_cast<double>(options.sizes[i]) / medians["ring shm"] / 1e9;
    fmt::print("{:>16.2f}{:>11.2f}x{:>11.2f}x\n", busbw, medians["ompi shm"] / medians["ring shm"],
               medians["ompi tcp"] / medians["ring tcp"]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("allreduce: our ring beside Open MPI");
  Options options;
  bool as_mpi_rank = false;
  app.add_option("--ranks", options.ranks, "numbers of ranks")->delimiter(',');
  app.add_option("--sizes", options.sizes, "bytes")->delimiter(',');
  app.add_option("--rounds", options.rounds, "turns of each contender");
  app.add_option("--seconds", options.seconds, "of each size and turn");
  app.add_flag("--as-mpi-rank", as_mpi_rank, "what mpirun starts");
  CLI11_PARSE(app, argc, argv);
  if (as_mpi_rank) return run_as_mpi_rank(options);
  for (int size : options.ranks) run(size, options);
}
