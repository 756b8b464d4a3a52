// --mode=hybrid against its formulas: what workers send, and how long that takes over a link that both exchanges share.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "common/transport/link_shape.h"
#include "tests/support/run_program.h"
#include "tests/support/training_job.h"
#include "worker/data/zipf_sets.h"

namespace syncopate::testing_support::hybrid_runs {
namespace {

using Flags = std::vector<std::string>;

constexpr int kSteps = 12, kBatch = 1024;
constexpr worker::ZipfCounts kCounts{.rows = 200000, .train = 32768, .test = 256};
constexpr const char* kModel = "wide-deep:8";
const Flags kJob{"--dataset=zipf-clicks",
                 fmt::format("--model={}", kModel),
                 fmt::format("--table-rows={}", kCounts.rows),
                 fmt::format("--train-samples={}", kCounts.train),
                 fmt::format("--test-samples={}", kCounts.test),
                 fmt::format("--batch-size={}", kBatch),
                 fmt::format("--steps={}", kSteps),
                 "--evaluate-every=100epochs",
                 "--timeout=60",
                 "--servers=2"};
const Flags kHybrid{"--mode=hybrid", "--collective=ring"};

double dense_bytes() {
  const worker::DatasetPair data = worker::make_zipf_clicks(kCounts, 1);
  const ParamLayout layout = layout_of({.data = data.train.get(), .model = kModel, .batch_size = kBatch});
  return sizeof(float) * static_cast<double>(layout.dense().size());
}

std::vector<double> numbers(const Program& program, const std::string& column) {
  std::vector<double> values;
  for (const std::string& cell : program.column("steps.csv", column)) values.push_back(std::stod(cell));
  return values;
}

// Sums over all steps and workers.
struct Traffic {
  double out = 0, in = 0;
};
Traffic traffic_of(const Flags& flags) {
  Program program(kJob + flags);
  EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
  const std::vector<double> out = numbers(program, "bytes_out"), in = numbers(program, "bytes_in");
  return {std::accumulate(out.begin(), out.end(), 0.0), std::accumulate(in.begin(), in.end(), 0.0)};
}

// Rows travel as they do to servers of all weights. Of the rest each worker sends 2 (n-1)/n around the ring, and not
// all of it to the servers.
TEST(Hybrid, SendsRowsToServersAndTheRestAroundARing) {
  for (const int workers : {2, 4}) {
    const Flags job{fmt::format("--workers={}", workers), "--transport=sockets"};
    const Traffic servers = traffic_of(job + Flags{"--mode=ps", "--consistency=sync"}),
                  both = traffic_of(job + kHybrid);
    const double more = (2 * (workers - 1) - workers) * dense_bytes() * kSteps;
    EXPECT_GT(servers.out, workers * dense_bytes() * kSteps);
    EXPECT_EQ(both.out, servers.out + more) << workers;
    EXPECT_EQ(both.in, servers.in + more) << workers;
  }
}

// The rows come before forward, and go while the ring goes: a worker's one link carries both.
TEST(Hybrid, TakesAsLongAsALinkNeedsForBothExchanges) {
  const Flags job = kHybrid + Flags{"--workers=2", "--shape=50mbit", "--warmup-steps=2"};
  for (const Flags& place : {Flags{"--transport=shm"}, Flags{"--cluster=simulated", "--compute=1ms"}}) {
    Program program(kJob + job + place);
    ASSERT_EQ(program.wait().exit_code, 0) << program.errors();
    const nlohmann::json summary = program.summary();
    const double rows = summary["bytes_in_per_step"].get<double>() - dense_bytes();
    EXPECT_GT(rows, 0.5 * dense_bytes());
    const double rate = LinkShape::parse("50mbit")->payload_bytes_per_second();
    EXPECT_GT(summary["step_ms_median"], 0.95e3 * (2 * rows + dense_bytes()) / rate) << place.front();
  }
}

// What is chosen where, and that a step then sends what the mode sends that does the same.
struct Case {
  Flags place;
  const char* choice;
  Flags same_as;
};

TEST(Hybrid, SendsWhatItHasChosen) {
  const Flags apart{"--workers=4", "--servers=4", "--cluster=simulated", "--compute=1ms", "--shape=1gbit"};
  const Case cases[] = {
      {{"--workers=2", "--transport=sockets", "--shape=1gbit"},
       "dense by workers; category by workers (",
       {"--mode=allreduce", "--collective=ring", "--sparse-exchange=rows"}},
      {apart + Flags{"--hosts=4x1"}, "dense by workers; category by servers (", kHybrid},
      {apart, "dense by servers; category by servers (", {"--mode=ps", "--consistency=sync"}},
  };
  for (const auto& [place, choice, same_as] : cases) {
    Flags job = kJob;
    std::erase_if(job, [](const std::string& flag) { return flag.starts_with("--servers"); });
    Program chosen(job + kHybrid + place + Flags{"--exchange=auto", "--sparse-exchange=rows"});
    const ProgramEnd end = chosen.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    EXPECT_THAT(chosen.summary()["facts"]["exchange"].get<std::string>(), testing::StartsWith(choice));
    EXPECT_THAT(end.out, testing::HasSubstr(choice));
    Program same(job + same_as + place);
    ASSERT_EQ(same.wait().exit_code, 0) << same.errors();
    for (const char* column : {"bytes_out", "bytes_in"}) {
      EXPECT_THAT(numbers(chosen, column), testing::UnorderedElementsAreArray(numbers(same, column))) << choice;
    }
  }
}

}  // namespace
}  // namespace syncopate::testing_support::hybrid_runs
