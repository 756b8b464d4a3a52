// Allreduce of float32 in place, by size and number of ranks: our collectives and their peers, interleaved in one run.
//
//   allreduce_bench [--ranks=2,4] [--rounds=5] [--seconds=0.1] [--sizes=4096,65536,1048576,4194304,16777216,67108864]
//                   [--contenders=direct/shm,ring/shm,ompi/shm,...] [--segment-bytes=N] [--fresh] [--json=FILE]
//
// Ranks are processes. In each round every contender has its turn, so that a slow spell of the machine falls on all;
// shown are medians over the rounds of the mean time of one operation, in microseconds, and, for each of ours, how much
// longer the peers on the same wire take (above 1: ours is faster).
//
// SCHEDULE/WIRE    ours: direct/shm, ring/shm, ring/sockets, halving-doubling/sockets, ring/tcp, ...
// auto/sockets     the schedule that is chosen by size from the wire's speed, measured anew
// predicted-SCHEDULE/WIRE   what the cost model says, from a measurement of the wire's speed in the same processes;
//                  messages uncut, as with --segment-bytes=0
// mpi/shm          our collective over Open MPI: non-blocking, with a deadline
// ompi/shm, ompi/tcp   Open MPI's MPI_Allreduce with its defaults; /tcp by --mca btl tcp,self
// ompi-tuned/shm   Open MPI's best on shared memory: the faster, size by size, of its default algorithm and its
//                  segmented ring of 1 MiB, both without single copy and with memory that is not given back
// gloo/tcp         Gloo's fastest, size by size, of ring, bcube and halving-doubling, where the program is built
// limit/shm        every rank does all that a direct allreduce does in memory, its part in all buffers read and written
//                  once, and waits for nobody
//
// Operations follow one another on a buffer that nobody else touches; with --fresh each rank fills its own anew before
// each operation, as a backward pass does, outside of the time that is counted.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>

#include "allreduce/collective/direct_collective.h"
#include "allreduce/collective/link_measurement.h"
#include "allreduce/collective/mpi_collective.h"
#include "allreduce/collective/rank_order_sum.h"
#include "allreduce/collective/schedule_collective.h"
#include "common/transport/make_transport.h"
#include "experiments/cluster/launcher/launcher.h"
#include "tests/support/blocking_mpi.h"
#include "tests/support/forked_ranks.h"
#include "tests/support/test_keys.h"

namespace {

using syncopate::Rendezvous;
using syncopate::Result;
using syncopate::Status;
using syncopate::TimePoint;
using syncopate::allreduce::Collective;
using syncopate::allreduce::ScheduleKind;

constexpr std::string_view kPredicted = "predicted-";

using Seconds = std::vector<double>;  // of one operation, by size

struct Options {
  std::vector<int> ranks{2, 4};
  std::vector<std::size_t> sizes{4096, 65536, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
  std::vector<std::string> contenders{"direct/shm",   "ring/shm",     "ompi/shm", "ompi-tuned/shm", "limit/shm",
                                      "auto/sockets", "ring/sockets", "ompi/tcp", "gloo/tcp"};
  int rounds = 5;
  double seconds = 0.1;
  std::size_t segment_bytes = 512 * 1024;  // of schedules, as runs take; 0: uncut
  bool fresh = false;
  std::string json;  // a file; empty: none
};

void exit_unless_ok(const Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "allreduce_bench: {}\n", status.message());
  std::_Exit(1);
}

TimePoint soon() { return syncopate::SteadyClock().now() + std::chrono::seconds(60); }

// Mean seconds of an operation. `fill` is called before each where buffers are to be fresh.
template <typename Operation, typename Fill>
double mean_of(int operations, bool fresh, Operation&& operation, Fill&& fill) {
  const syncopate::SteadyClock clock;
  if (!fresh) {
    const TimePoint begin = clock.now();
    for (int i = 0; i < operations; ++i) operation();
    return syncopate::seconds(clock.now() - begin) / operations;
  }
  double sum = 0;
  for (int i = 0; i < operations; ++i) {
    fill();
    const TimePoint begin = clock.now();
    operation();
    sum += syncopate::seconds(clock.now() - begin);
  }
  return sum / operations;
}

// Called by every rank.
Seconds measure(Collective& collective, const Options& options) {
  Seconds means;
  for (const std::size_t bytes : options.sizes) {
    Result<std::span<float>> buffer = collective.allocate(bytes / sizeof(float));
    Result<std::span<float>> count = collective.allocate(16);
    exit_unless_ok(buffer.status());
    exit_unless_ok(count.status());
    const auto timed = [&](int operations) {
      exit_unless_ok(collective.barrier(soon()));
      return mean_of(
          operations, options.fresh, [&] { exit_unless_ok(collective.all_reduce(*buffer, soon())); },
          [&] {
            std::ranges::fill(*buffer, 0.0f);
            exit_unless_ok(collective.barrier(soon()));
          });
    };
    timed(2);
    // Zeros stay zeros under repeated sums; the check has inputs whose sum is known exactly.
    std::ranges::fill(*buffer, static_cast<float>(collective.rank() + 1));
    exit_unless_ok(collective.all_reduce(*buffer, soon()));
    const auto expected = static_cast<float>(collective.size() * (collective.size() + 1) / 2);
    if (!std::ranges::all_of(*buffer, [&](float value) { return value == expected; })) {
      exit_unless_ok(Status(syncopate::Code::kInternal, "a wrong sum"));
    }
    std::ranges::fill(*buffer, 0.0f);
    (*count)[0] = static_cast<float>(std::clamp(options.seconds / timed(3), 3.0, 20000.0));
    exit_unless_ok(collective.broadcast(*count, 0, soon()));
    means.push_back(timed(static_cast<int>((*count)[0])));
  }
  return means;
}

Seconds predict(ScheduleKind kind, int size, const syncopate::allreduce::GroupLinks& links, const Options& options) {
  const syncopate::allreduce::CostModel model(syncopate::allreduce::one_host(size), links);
  Seconds seconds;
  for (const std::size_t bytes : options.sizes) {
    seconds.push_back(model.seconds(kind, bytes));
  }
  return seconds;
}

Seconds measure_ours(const std::string& schedule, const std::string& wire, int size, const Options& options) {
  return syncopate::testing_support::run_forked_ranks(size, [&](int rank, Rendezvous& rendezvous) {
    const syncopate::TransportOptions endpoint{.run_id = fmt::format("bench-{}", getppid()),
                                               .group = "bench",
                                               .rank = rank,
                                               .size = size,
                                               .keys = syncopate::testing_support::test_keys()};
    if (schedule == "direct" && wire == "shm") {
      auto direct = syncopate::allreduce::make_direct_collective(endpoint, rendezvous, soon());
      exit_unless_ok(direct.status());
      return measure(**direct, options);
    }
    const auto kind = syncopate::parse_transport_kind(wire);
    exit_unless_ok(kind.status());
    auto transport = syncopate::make_transport(*kind, endpoint, rendezvous, soon());
    exit_unless_ok(transport.status());
    const bool is_predicted = schedule.starts_with(kPredicted);
    const std::string name = is_predicted ? schedule.substr(kPredicted.size()) : schedule;
    const auto kind_of_name = syncopate::allreduce::parse_schedule_kind(name == "auto" ? "ring" : name);
    exit_unless_ok(kind_of_name.status());
    const auto collective = syncopate::allreduce::make_schedule_collective(
        **transport,
        {.kind = is_predicted ? ScheduleKind::kRing : *kind_of_name, .segment_bytes = options.segment_bytes});
    if (!is_predicted && name != "auto") return measure(*collective, options);
    const auto links =
        syncopate::allreduce::agree_on_links(*collective, nullptr, std::nullopt, syncopate::SteadyClock(), soon());
    exit_unless_ok(links.status());
    if (is_predicted) return predict(*kind_of_name, size, *links, options);
    collective->choose_by(*links);
    return measure(*collective, options);
  })[0];
}

// The longest of all ranks' times, since none waits for another.
Seconds measure_limit(int size, const Options& options) {
  Seconds longest;
  for (const std::size_t bytes : options.sizes) {
    std::vector<float*> buffers;
    for (int rank = 0; rank < size; ++rank) {
      void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
      if (memory == MAP_FAILED) exit_unless_ok(Status(syncopate::Code::kResourceExhausted, "no memory"));
      buffers.push_back(static_cast<float*>(memory));
    }
    const std::size_t part = bytes / sizeof(float) / static_cast<std::size_t>(size);
    const auto by_rank = syncopate::testing_support::run_forked_ranks(size, [&](int rank, Rendezvous& rendezvous) {
      std::vector<float*> own;
      for (float* buffer : buffers) own.push_back(buffer + part * static_cast<std::size_t>(rank));
      const auto work = [&] { syncopate::allreduce::sum_everywhere(own, part); };
      const auto fill = [&] { std::fill_n(buffers[static_cast<std::size_t>(rank)], bytes / sizeof(float), 0.0f); };
      const double once = mean_of(3, false, work, fill);
      (void)rendezvous.exchange("start", rank, size, "", soon());
      return Seconds{
          mean_of(std::clamp(static_cast<int>(options.seconds / once), 3, 20000), options.fresh, work, fill)};
    });
    double slowest = 0;
    for (const Seconds& seconds : by_rank) slowest = std::max(slowest, seconds[0]);
    longest.push_back(slowest);
    for (float* buffer : buffers) munmap(buffer, bytes);
  }
  return longest;
}

Seconds output_of(const std::string& command, std::size_t values) {
  FILE* output = popen((command + " 2>/dev/null").c_str(), "r");
  Seconds means(values);
  for (double& mean : means) {
    if (fscanf(output, "%lf", &mean) != 1) exit_unless_ok(Status(syncopate::Code::kInternal, "failed: " + command));
  }
  pclose(output);
  return means;
}

std::filesystem::path this_program() { return std::filesystem::read_symlink("/proc/self/exe"); }

// This very program under mpirun, which prints its means.
Seconds measure_mpi(const std::string& settings, int size, const Options& options, const char* as = "--as-mpi-rank") {
  exit_unless_ok(syncopate::experiments::check_mpirun_allows(geteuid()));
  return output_of(fmt::format("mpirun --oversubscribe --bind-to none {} -n {} {} {} --seconds={} {} --sizes={}",
                               settings, size, this_program().string(), as, options.seconds,
                               options.fresh ? "--fresh" : "", fmt::join(options.sizes, ",")),
                   options.sizes.size());
}

Seconds faster_of(const Seconds& a, const Seconds& b) {
  Seconds faster(a.size());
  std::ranges::transform(a, b, faster.begin(), [](double x, double y) { return std::min(x, y); });
  return faster;
}

Seconds measure_tuned_mpi(int size, const Options& options) {
  const std::string memory =
      "--mca btl_vader_single_copy_mechanism none -x MALLOC_MMAP_THRESHOLD_=1073741824 "
      "-x MALLOC_TRIM_THRESHOLD_=4294967296";
  return faster_of(measure_mpi(memory, size, options),
                   measure_mpi(memory + " --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm 5"
                                        " --mca coll_tuned_allreduce_algorithm_segmentsize 1048576",
                               size, options));
}

std::filesystem::path gloo_program() { return this_program().parent_path() / "gloo_allreduce"; }

Seconds measure_gloo(int size, const Options& options) {
  Seconds best;
  for (const char* algorithm : {"ring", "bcube", "halving-doubling"}) {
    std::string store = (std::filesystem::temp_directory_path() / "gloo-XXXXXX").string();
    if (mkdtemp(store.data()) == nullptr) exit_unless_ok(Status(syncopate::Code::kInternal, "no temporary directory"));
    const auto command = [&](int rank) {
      return fmt::format("{} {} {} {} {} {} {}", gloo_program().string(), rank, size, store, algorithm, options.seconds,
                         fmt::join(options.sizes, " "));
    };
    std::string all;
    for (int rank = 1; rank < size; ++rank) all += command(rank) + " & ";
    const Seconds means = output_of("(" + all + command(0) + "; wait)", options.sizes.size());
    best = best.empty() ? means : faster_of(best, means);
    std::filesystem::remove_all(store);
  }
  return best;
}

struct Contender {
  explicit Contender(const std::string& given)
      : text(given),
        name(given.substr(0, given.find('/'))),
        wire(given.substr(std::min(given.size(), name.size() + 1))) {}

  bool is_peer() const {
    return name.starts_with("ompi") || name.starts_with(kPredicted) || name == "gloo" || name == "limit";
  }
  // Everything but shared memory goes over loopback's tcp.
  bool beside(const Contender& other) const { return (wire == "shm") == (other.wire == "shm"); }

  bool predicts_another_than(const Contender& other) const {
    return name.starts_with(kPredicted) && name.substr(kPredicted.size()) != other.name;
  }

  std::string text, name, wire;
};

Seconds measure(const Contender& contender, int size, const Options& options) {
  if (contender.name == "ompi") return measure_mpi(contender.wire == "tcp" ? "--mca btl tcp,self" : "", size, options);
  if (contender.name == "ompi-tuned") return measure_tuned_mpi(size, options);
  if (contender.name == "gloo") return measure_gloo(size, options);
  if (contender.name == "limit") return measure_limit(size, options);
  if (contender.name == "mpi") {
    return measure_mpi("--mca mpi_yield_when_idle 1", size, options, "--as-mpi-rank --ours");
  }
  return measure_ours(contender.name, contender.wire, size, options);
}

int run_as_mpi_rank(bool with_ours, const Options& options) {
  std::unique_ptr<Collective> mpi;
  if (with_ours) {
    auto ours = syncopate::allreduce::make_mpi_collective(std::atoi(std::getenv("OMPI_COMM_WORLD_RANK")),
                                                          std::atoi(std::getenv("OMPI_COMM_WORLD_SIZE")));
    exit_unless_ok(ours.status());
    mpi = std::move(*ours);
  } else {
    mpi = syncopate::testing_support::make_blocking_mpi();
  }
  const Seconds means = measure(*mpi, options);
  if (mpi->rank() == 0) fmt::print("{:.9f}\n", fmt::join(means, " "));
  return 0;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Medians over the rounds, by contender and size.
using Table = std::map<std::string, Seconds>;

Table run(int size, const std::vector<Contender>& contenders, const Options& options) {
  std::map<std::string, std::vector<Seconds>> rounds;
  for (int round = 0; round < options.rounds; ++round) {
    for (const Contender& contender : contenders) {
      rounds[contender.text].push_back(measure(contender, size, options));
    }
  }
  Table medians;
  for (const auto& [name, measured] : rounds) {
    for (std::size_t i = 0; i < options.sizes.size(); ++i) {
      std::vector<double> values;
      for (const Seconds& means : measured) values.push_back(means[i]);
      medians[name].push_back(median(values));
    }
  }
  return medians;
}

void print(int size, const std::vector<Contender>& contenders, const Table& medians, const Options& options) {
  fmt::print("\n{} ranks, us{}\n{:>10}", size, options.fresh ? ", fresh buffers" : "", "bytes");
  for (const Contender& contender : contenders) fmt::print("{:>36}", contender.text);
  for (std::size_t i = 0; i < options.sizes.size(); ++i) {
    fmt::print("\n{:>10}", options.sizes[i]);
    for (const Contender& contender : contenders) fmt::print("{:>36.1f}", medians.at(contender.text)[i] * 1e6);
  }
  fmt::print("\nhow much longer the peers take\n");
  for (const Contender& ours : contenders | std::views::filter([](const auto& c) { return !c.is_peer(); })) {
    for (const Contender& peer : contenders) {
      if (!peer.is_peer() || !ours.beside(peer) || peer.predicts_another_than(ours)) continue;
      fmt::print("{:>36} / {:<26}", peer.text, ours.text);
      for (std::size_t i = 0; i < options.sizes.size(); ++i) {
        fmt::print("{:>8.2f}", medians.at(peer.text)[i] / medians.at(ours.text)[i]);
      }
      fmt::print("\n");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("allreduce: our collectives beside Open MPI and Gloo; see the head of allreduce_bench.cc");
  Options options;
  bool as_mpi_rank = false, with_ours = false;
  app.add_option("--ranks", options.ranks, "numbers of ranks")->delimiter(',');
  app.add_option("--sizes", options.sizes, "bytes")->delimiter(',');
  app.add_option("--contenders", options.contenders, "who takes part")->delimiter(',');
  app.add_option("--rounds", options.rounds, "turns of each contender");
  app.add_option("--seconds", options.seconds, "of each size and turn");
  app.add_option("--segment-bytes", options.segment_bytes, "parts of our schedules are no larger; 0: uncut");
  app.add_flag("--fresh", options.fresh, "each rank fills its buffer anew before each operation");
  app.add_option("--json", options.json, "file for the medians");
  app.add_flag("--as-mpi-rank", as_mpi_rank, "what mpirun starts");
  app.add_flag("--ours", with_ours, "with --as-mpi-rank: our collective over Open MPI");
  CLI11_PARSE(app, argc, argv);
  if (as_mpi_rank) return run_as_mpi_rank(with_ours, options);
  std::vector<Contender> contenders;
  for (const std::string& text : options.contenders) {
    const Contender contender(text);
    if (contender.name == "gloo" && (options.fresh || !std::filesystem::exists(gloo_program()))) {
      fmt::print("{} is left out: {}\n", text, options.fresh ? "it knows no --fresh" : "libgloo-dev was not installed");
    } else {
      contenders.push_back(contender);
    }
  }
  nlohmann::json kept{{"sizes", options.sizes}, {"unit", "seconds"}, {"fresh", options.fresh}};
  for (int size : options.ranks) {
    const Table medians = run(size, contenders, options);
    print(size, contenders, medians, options);
    kept["medians"][fmt::format("{} ranks", size)] = medians;
  }
  if (!options.json.empty()) std::ofstream(options.json) << kept.dump(1) << '\n';
}
