// RowTable: rows of 32 floats read and updated a second, by the size of the table and by how its keys are drawn, beside
// what memory would allow.
//   build/release/tests/bench/row_bench
//
// A step touches the distinct keys among 16384 that are drawn uniformly, or by Zipf's law with exponent 1 (as a power
// of the number of rows). limit: rows a second if all bytes of a row (read, and written where it is) went as fast as a
// copy of memory that is far larger than the caches, measured here; tables that a cache holds are beyond it. All time
// is the processor's, so that what else the machine does disturbs less.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <vector>

#include "common/random.h"
#include "common/tables/row_table.h"

namespace syncopate {
namespace {

constexpr std::size_t kWidth = 32;
constexpr int kDraws = 16384;

enum Keys { kUniform, kZipf };

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Bytes a second that a copy reads and writes, together: the best of several.
double memory_bytes_a_second() {
  static const double measured = [] {
    std::vector<char> from(std::size_t{256} << 20, 'a'), to(from.size());
    double best = 0;
    for (int round = 0; round < 5; ++round) {
      const double begin = processor_seconds();
      std::memcpy(to.data(), from.data(), from.size());
      benchmark::DoNotOptimize(to.data());
      best = std::max(best, 2.0 * static_cast<double>(from.size()) / (processor_seconds() - begin));
    }
    return best;
  }();
  return measured;
}

std::vector<std::vector<RowKey>> steps_of(Keys how, std::uint64_t rows) {
  Random random(1);
  std::vector<std::vector<RowKey>> steps(32);
  for (std::vector<RowKey>& keys : steps) {
    for (int i = 0; i < kDraws; ++i) {
      const double of_zipf = std::pow(static_cast<double>(rows), random.uniform()) - 1;
      keys.push_back(static_cast<RowKey>(how == kZipf ? static_cast<std::uint64_t>(of_zipf) : random.below(rows)));
    }
    std::ranges::sort(keys);
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  }
  return steps;
}

// Calls step(keys, values) again and again, of a table in which all rows are.
template <typename Step>
void run(benchmark::State& state, OptimizerKind kind, std::size_t bytes_a_row, const Step& step) {
  const auto rows = static_cast<std::uint64_t>(state.range(0));
  const std::vector<std::vector<RowKey>> steps = steps_of(static_cast<Keys>(state.range(1)), rows);
  RowTable table({.width = kWidth, .limit = 0.1f, .optimizer = {.kind = kind}});
  std::vector<float> values(kDraws * kWidth, 1e-3f);
  for (std::uint64_t key = 0; key < rows; ++key) {
    const RowKey one[] = {static_cast<RowKey>(key)};
    if (!table.read(one, std::span(values).first(kWidth)).ok()) return state.SkipWithError("no memory");
  }
  std::size_t next = 0;
  double touched = 0;
  for (auto each : state) {
    const std::vector<RowKey>& keys = steps[next++ % steps.size()];
    if (!step(table, RowKeys(keys), std::span(values).first(keys.size() * kWidth)).ok()) return;
    touched += static_cast<double>(keys.size());
  }
  state.counters["rows"] = benchmark::Counter(touched, benchmark::Counter::kIsRate);
  state.counters["limit"] = memory_bytes_a_second() / static_cast<double>(bytes_a_row);
  state.counters["MiB"] = static_cast<double>(table.bytes()) / (1 << 20);
}

void read_rows(benchmark::State& state) {
  run(state, OptimizerKind::kSgd, 2 * kWidth * sizeof(float),
      [](RowTable& table, RowKeys keys, std::span<float> values) { return table.read(keys, values); });
}

// Reads and writes a row and what is remembered of it, and reads its gradient.
template <OptimizerKind kKind>
void update_rows(benchmark::State& state) {
  const std::size_t floats = kWidth * (2 * (1 + state_floats({.kind = kKind})) + 1);
  run(state, kKind, floats * sizeof(float), [](RowTable& table, RowKeys keys, std::span<const float> gradients) {
    return table.update(keys, gradients, {.learning_rate = 1e-3f});
  });
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"rows", "zipf"})->ArgsProduct({{10'000, 100'000, 1'000'000, 10'000'000}, {kUniform, kZipf}});
}
BENCHMARK(read_rows)->Apply(sizes);
BENCHMARK(update_rows<OptimizerKind::kSgd>)->Apply(sizes);
BENCHMARK(update_rows<OptimizerKind::kAdagrad>)->Apply(sizes);
BENCHMARK(update_rows<OptimizerKind::kAdam>)->Apply(sizes);

}  // namespace
}  // namespace syncopate

BENCHMARK_MAIN();
