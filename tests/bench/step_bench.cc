// What synchronising a step costs by allreduce in shared memory, beside what nothing can do without: a user's command
// as it is by itself, with the gradients in 1, 2 and 4 buckets, and raw primitives in the same rounds.
//
//   step_bench [--programs=build/release/syncopate,OTHER...] [--workers=2] [--batch-size=32] [--rounds=5]
//   [--steps=2000]
//              [-- FLAG...]
//
// In each round the primitives and every program with every number of buckets have their turn; FLAGs go to each run.
// Shown are medians over the rounds. The primitives:
//
//   futex    a process wakes another and sleeps until that wakes it: there and back
//   sum      each of two processes has filled its buffer, of as many bytes as the gradients, and sums its half of both,
//            into both; the slower one's time
//
// and of each run:
//
//   step        ms, the median
//   wait        ms, the median, that the compute thread of a worker stood waiting in a step
//   / futex     that wait over futex
//   / sum       that wait over sum: 1 is a wait for the sum alone
//   switches    of context, a step of one worker, in all processes and threads of the run: a count, which holds on a
//               busy machine, too
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "allreduce/collective/rank_order_sum.h"
#include "common/clock.h"
#include "common/os/futex.h"
#include "common/param_layout.h"
#include "tests/support/forked_ranks.h"

namespace {

namespace fs = std::filesystem;
using syncopate::Rendezvous;
using syncopate::SteadyClock;
using syncopate::TimePoint;

// The tensors of the model that runs train by themselves, 784-256-256-10, as far as buckets depend on them.
syncopate::ParamLayout layout_of_mlp() {
  syncopate::ParamLayout layout;
  for (const auto& [in, out] : {std::pair{784, 256}, {256, 256}, {256, 10}}) {
    layout.add(fmt::format("{}.weight", layout.tensors().size()), {out, in});
    layout.add(fmt::format("{}.bias", layout.tensors().size()), {out});
  }
  return layout;
}

// By --bucket-bytes, of which the second is the default.
constexpr std::array<std::size_t, 3> kBucketBytes{4 << 20, 1 << 20, 64 << 10};

struct Options {
  std::vector<std::string> programs;
  int workers = 2;
  int batch_size = 32;
  int rounds = 5;
  int steps = 2000;
  std::vector<std::string> flags;
};

struct RunCost {
  double step = 0, wait = 0;  // us
  double switches = 0;
};

[[noreturn]] void fail(const std::string& message) {
  fmt::print(stderr, "step_bench: {}\n", message);
  std::exit(1);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Memory of all zeros that forked processes share with this one.
template <typename T>
T* shared(std::size_t count) {
  void* memory =
      mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) fail("no memory");
  return static_cast<T*>(memory);
}

struct alignas(64) Word {
  std::atomic<std::uint32_t> value;
};

void sleep_until(const std::atomic<std::uint32_t>& word, std::uint32_t expected) {
  for (std::uint32_t seen = word.load(); seen != expected; seen = word.load()) {
    syncopate::futex_wait(word, seen, std::chrono::seconds(1));
  }
}

// Microseconds.
double measure_futex() {
  constexpr std::uint32_t kTrips = 2000;
  Word* words = shared<Word>(2);
  const auto trip = [&](int rank, std::uint32_t number) {
    const auto give = [&] {
      words[rank].value.store(number);
      syncopate::futex_wake(words[rank].value);
    };
    if (rank == 0) give();
    sleep_until(words[1 - rank].value, number);
    if (rank == 1) give();
  };
  const auto by_rank = syncopate::testing_support::run_forked_ranks(2, [&](int rank, Rendezvous&) {
    const SteadyClock clock;
    std::vector<double> times;
    for (std::uint32_t number = 1; number <= kTrips; ++number) {
      const TimePoint begin = clock.now();
      trip(rank, number);
      times.push_back(syncopate::microseconds(clock.now() - begin));
    }
    return std::vector<double>{median(times)};
  });
  munmap(words, 2 * sizeof(Word));
  return by_rank[0][0];
}

// Microseconds.
double measure_sum(std::size_t floats) {
  constexpr std::uint32_t kSums = 500;
  const std::array<float*, 2> buffers{shared<float>(floats), shared<float>(floats)};
  Word* words = shared<Word>(4);
  const auto by_rank = syncopate::testing_support::run_forked_ranks(2, [&](int rank, Rendezvous&) {
    const SteadyClock clock;
    const std::size_t half = floats / 2;
    const std::size_t begin_of_part = rank == 0 ? 0 : half;
    const std::array<float*, 2> part{buffers[0] + begin_of_part, buffers[1] + begin_of_part};
    std::vector<double> times;
    for (std::uint32_t number = 1; number <= kSums; ++number) {
      std::fill_n(buffers[static_cast<std::size_t>(rank)], floats, static_cast<float>(number));
      words[rank].value.store(number);
      while (words[1 - rank].value.load() < number) sched_yield();
      const TimePoint begin = clock.now();
      syncopate::allreduce::sum_everywhere(part, half);
      times.push_back(syncopate::microseconds(clock.now() - begin));
      // Nobody fills a buffer while the other still sums it.
      words[2 + rank].value.store(number);
      while (words[3 - rank].value.load() < number) sched_yield();
    }
    return std::vector<double>{median(times)};
  });
  for (float* buffer : buffers) munmap(buffer, floats * sizeof(float));
  munmap(words, 4 * sizeof(Word));
  return std::max(by_rank[0][0], by_rank[1][0]);
}

// Counts those of all processes that have ended below this one.
std::int64_t switches_so_far() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

double median_of_column(const fs::path& file, const std::string& name, int from_step) {
  std::ifstream lines(file);
  std::string line;
  std::getline(lines, line);
  const auto fields_of = [](const std::string& text) {
    std::vector<std::string> fields;
    std::istringstream stream(text);
    for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
    return fields;
  };
  const std::vector<std::string> names = fields_of(line);
  const auto at = [&](const std::string& wanted) {
    const auto found = std::ranges::find(names, wanted);
    if (found == names.end()) fail(fmt::format("{} has no column {}", file.string(), wanted));
    return static_cast<std::size_t>(found - names.begin());
  };
  const std::size_t step = at("step"), column = at(name);
  std::vector<double> values;
  while (std::getline(lines, line)) {
    const std::vector<std::string> fields = fields_of(line);
    if (std::stoi(fields[step]) >= from_step) values.push_back(std::stod(fields[column]));
  }
  if (values.empty()) fail(fmt::format("{} has no step from {} on", file.string(), from_step));
  return median(std::move(values));
}

RunCost run(const std::string& program, std::size_t bucket_bytes, const Options& options) {
  std::string folder = (fs::temp_directory_path() / "step-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) fail("no temporary directory");
  const std::string command = fmt::format(
      "'{}' --mode=allreduce --workers={} --batch-size={} --steps={} --test-samples=100 --bucket-bytes={} {} "
      "--output='{}/run' > '{}/log' 2>&1",
      program, options.workers, options.batch_size, options.steps, bucket_bytes, fmt::join(options.flags, " "), folder,
      folder);
  const std::int64_t before = switches_so_far();
  if (std::system(command.c_str()) != 0) fail(fmt::format("failed, see {}/log: {}", folder, command));
  const auto switches = static_cast<double>(switches_so_far() - before);
  const fs::path steps = fs::path(folder) / "run/steps.csv";
  const RunCost cost{.step = median_of_column(steps, "total_us", options.steps / 10),
                     .wait = median_of_column(steps, "exposed_wait_us", options.steps / 10),
                     .switches = switches / options.steps / options.workers};
  fs::remove_all(folder);
  return cost;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("what synchronising a step costs beside raw primitives; see the head of step_bench.cc");
  Options options;
  const fs::path own = fs::read_symlink("/proc/self/exe");
  options.programs = {(own.parent_path() / "../../syncopate").lexically_normal().string()};
  app.add_option("--programs", options.programs, "builds of the program")->delimiter(',');
  app.add_option("--workers", options.workers);
  app.add_option("--batch-size", options.batch_size, "of a worker");
  app.add_option("--rounds", options.rounds, "turns of each");
  app.add_option("--steps", options.steps, "of each run");
  app.add_option("flags", options.flags, "for each run, after --");
  CLI11_PARSE(app, argc, argv);

  const syncopate::ParamLayout layout = layout_of_mlp();
  std::vector<double> futex, sum;
  std::map<std::pair<std::string, std::size_t>, std::vector<RunCost>> runs;
  for (int round = 0; round < options.rounds; ++round) {
    futex.push_back(measure_futex());
    sum.push_back(measure_sum(layout.size()));
    for (const std::size_t bucket_bytes : kBucketBytes) {
      for (const std::string& program : options.programs) {
        runs[{program, bucket_bytes}].push_back(run(program, bucket_bytes, options));
      }
    }
  }

  fmt::print("{} workers, batches of {}, medians of {} rounds\nfutex {:.1f} us, sum of {:.2f} MB {:.1f} us\n",
             options.workers, options.batch_size, options.rounds, median(futex),
             static_cast<double>(layout.size() * sizeof(float)) / 1e6, median(sum));
  fmt::print("{:>8}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "buckets", "step", "wait", "/ futex", "/ sum", "switches");
  for (const std::string& program : options.programs) {
    if (options.programs.size() > 1) fmt::print("{}\n", program);
    for (const std::size_t bucket_bytes : kBucketBytes) {
      const auto median_of = [&](double RunCost::*figure) {
        std::vector<double> values;
        for (const RunCost& cost : runs[{program, bucket_bytes}]) values.push_back(cost.*figure);
        return median(std::move(values));
      };
      const double wait = median_of(&RunCost::wait);
      fmt::print("{:>8}{:>10.3f}{:>10.3f}{:>10.2f}{:>10.2f}{:>10.1f}\n",
                 syncopate::buckets_in_backward_order(layout, bucket_bytes).size(), median_of(&RunCost::step) / 1000,
                 wait / 1000, wait / median(futex), wait / median(sum), median_of(&RunCost::switches));
    }
  }
}
