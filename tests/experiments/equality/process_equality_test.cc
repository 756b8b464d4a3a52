// The same equality between processes: over every wire, and with Open MPI.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "experiments/run/compare.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing_support::Program;
using testing_support::ProgramEnd;
using Flags = std::vector<std::string>;

constexpr double kRounding = 5e-5;

struct Job {
  std::string model = "mlp";
  std::string optimizer = "adam";
  int workers = 2;
};

void PrintTo(const Job& job, std::ostream* out) {
  *out << job.model << ", " << job.optimizer << ", " << job.workers << " workers";
}

// The final weights after 100 steps at a hundredth of the usual rate (equality_test.cc says why).
std::vector<float> train(const Job& job, int batch, const Flags& mode) {
  Flags flags{"--model=" + job.model,
              "--optimizer=" + job.optimizer,
              fmt::format("--batch-size={}", batch),
              fmt::format("--learning-rate={}", usual_learning_rate(job.optimizer) / 100),
              fmt::format("--steps={}", testing_support::kSanitized ? 20 : 100),
              "--train-samples=4096",
              "--test-samples=512"};
  flags.insert(flags.end(), mode.begin(), mode.end());
  Program program(flags);
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 0) << end.err;
  return program.weights();
}

void expect_equality(const Job& job, const Flags& mode) {
  const int batch = job.model == "lenet" ? 2 : 8;
  Flags all = mode;
  all.push_back(fmt::format("--workers={}", job.workers));
  const std::vector<float> local = train(job, batch * job.workers, {"--mode=local"});
  const std::vector<float> weights = train(job, batch, all);
  ASSERT_FALSE(local.empty());
  const double distance = relative_distance(local, weights);
  EXPECT_LT(distance, kRounding);
  fmt::print("{}, {}, {} workers: relative distance {:.2g}\n", job.model, job.optimizer, job.workers, distance);
}

class EqualityOverEveryWire : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Wire, EqualityOverEveryWire, testing::Values("shm", "ipc", "tcp", "sockets"),
                         [](const auto& wire) { return wire.param; });

TEST_P(EqualityOverEveryWire, HoldsForTheRing) {
  expect_equality({.workers = 3}, {"--mode=allreduce", "--transport=" + GetParam()});
}

TEST_P(EqualityOverEveryWire, HoldsForPsSync) {
  expect_equality({.workers = 2}, {"--mode=ps", "--consistency=sync", "--servers=3", "--transport=" + GetParam()});
}

class EqualityWithOpenMpi : public testing::TestWithParam<Job> {};

std::vector<Job> mpi_jobs() {
  std::vector<Job> jobs;
  for (const char* model : {"mlp", "lenet"}) {
    for (const char* optimizer : {"sgd", "adam"}) {
      for (int workers = 2; workers <= 4; ++workers) jobs.push_back({model, optimizer, workers});
    }
  }
  return jobs;
}

INSTANTIATE_TEST_SUITE_P(Of, EqualityWithOpenMpi, testing::ValuesIn(mpi_jobs()), [](const auto& job) {
  return fmt::format("{}_{}_{}workers", job.param.model, job.param.optimizer, job.param.workers);
});

TEST_P(EqualityWithOpenMpi, Holds) {
  if (testing_support::kSanitized) GTEST_SKIP() << testing_support::kWhyNoMpi;
  expect_equality(GetParam(), {"--mode=allreduce", "--collective=mpi", "--launcher=mpirun"});
}

}  // namespace
}  // namespace syncopate::experiments
