// Runs of each mode under a few random faults each. fault_table.py does the same with many.
#include <fmt/format.h>

#include "tests/support/faulty_run.h"

namespace syncopate::faults {
namespace {

constexpr int kSteps = 400;
constexpr int kSeeds = 2;

struct FaultyMode {
  Mode mode;
  int seed;
};

void PrintTo(const FaultyMode& one, std::ostream* out) { *out << one.mode.name << ", random:" << one.seed; }

std::vector<FaultyMode> all_impaired() {
  const std::vector<Mode> modes{
      {"Local", {"--mode=local"}},
      {"AllreduceDirect", {"--mode=allreduce", "--workers=3"}},
      {"AllreduceRing", {"--mode=allreduce", "--workers=3", "--collective=ring"}},
      {"AllreduceRingOverSockets", {"--mode=allreduce", "--workers=3", "--transport=sockets", "--collective=ring"}},
      {"Mpi", {"--mode=allreduce", "--workers=2", "--collective=mpi", "--launcher=mpirun"}},
      {"PsSync", {"--mode=ps", "--workers=3", "--servers=2", "--consistency=sync"}},
      {"PsBounded", {"--mode=ps", "--workers=3", "--servers=2", "--consistency=bounded:4"}},
      {"PsAsync", {"--mode=ps", "--workers=3", "--servers=2", "--consistency=async"}},
      {"PsAsyncOverTcp", {"--mode=ps", "--workers=2", "--servers=1", "--consistency=async", "--transport=tcp"}},
  };
  std::vector<FaultyMode> all;
  for (const Mode& mode : modes) {
    for (int seed = 1; seed <= kSeeds; ++seed) all.push_back({mode, seed});
  }
  return all;
}

class RandomFaults : public testing::TestWithParam<FaultyMode> {
 protected:
  void SetUp() override {
    const Flags& flags = GetParam().mode.flags;
    if (testing_support::kSanitized && std::ranges::count(flags, "--collective=mpi") > 0) {
      GTEST_SKIP() << testing_support::kWhyNoMpi;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Of, RandomFaults, testing::ValuesIn(all_impaired()),
                         [](const auto& one) { return fmt::format("{}{}", one.param.mode.name, one.param.seed); });

TEST_P(RandomFaults, EndInSuccessOrInOneVerdictInTimeAndLeaveNothing) {
  Flags flags = small_run(GetParam().mode.flags, kSteps);
  flags.push_back(fmt::format("--fault=random:{}:any", GetParam().seed));
  const Remains remains;
  Program program(flags);
  expect_orderly_end(program, program.wait(), remains);
}

}  // namespace
}  // namespace syncopate::faults
