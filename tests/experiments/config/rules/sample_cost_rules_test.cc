// Samples that do not cost the same: what is taken, recorded and refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/config/resolution.h"
#include "experiments/config/toml.h"
#include "experiments/lab/compare/equality.h"
#include "experiments/lab/run/run_prediction.h"
#include "tests/experiments/config/typed_line.h"

namespace syncopate::experiments::sample_cost_rules {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

ResolvedRun run_of(const std::vector<const char*>& flags) {
  const Result<CommandLine> line = parse(flags);
  EXPECT_TRUE(line.ok()) << line.status().message();
  return presumed(line->config);
}

TEST(SampleCost, IsTakenInEveryModeAndRecorded) {
  for (const char* mode : {"--mode=local", "--mode=allreduce", "--mode=sharded", "--mode=ps"}) {
    const ResolvedRun run = run_of({mode, "--sample-cost=lognormal:0.5"});
    EXPECT_EQ(run.sample_costs.to_string(), "lognormal:0.5");
    EXPECT_TRUE(is_slowed(run, 0)) << "on real hosts it waits";
    EXPECT_THAT(to_toml(run), HasSubstr("sample-cost = \"lognormal:0.5\""));
    EXPECT_EQ(from_toml_text(to_toml(run))->sample_costs.to_string(), "lognormal:0.5");
  }
  EXPECT_THAT(to_toml(run_of({"--mode=allreduce"})), testing::Not(HasSubstr("sample-cost")));
}

TEST(SampleCost, TakesItsTimeInTheComputingOfASimulatedCluster) {
  const ResolvedRun run = run_of({"--mode=allreduce", "--cluster=simulated", "--sample-cost=zipf"});
  EXPECT_FALSE(is_slowed(run, 0));
  EXPECT_TRUE(is_slowed(run_of({"--mode=allreduce", "--cluster=simulated", "--straggler=0:2x"}), 0));
  EXPECT_FALSE(form_of(run)) << "no closed form knows of it";
  const ResolvedRun profile =
      run_of({"--mode=allreduce", "--cluster=simulated", "--model=profile:resnet50", "--compute=292ms"});
  EXPECT_TRUE(times_are_certain(profile));
  EXPECT_FALSE(times_are_certain(run_of({"--mode=allreduce", "--cluster=simulated", "--model=profile:resnet50",
                                         "--compute=292ms", "--sample-cost=zipf"})));
}

TEST(SampleCost, IsRefusedWhereItCannotBe) {
  EXPECT_EQ(refusal({"--sample-cost=heavy"}),
            "--sample-cost=heavy: costs must be zipf, zipf:EXPONENT (above 0 to 4) or lognormal:SIGMA (above 0 to 2)");
  EXPECT_THAT(refusal({"--mode=allreduce", "--pipeline=2", "--sample-cost=zipf"}),
              HasSubstr("--sample-cost: waits for others inside a pass would count as its computing"));
  EXPECT_EQ(refusal({"--mode=allreduce", "--pipeline=2", "--sample-cost=zipf", "--cluster=simulated"}), "accepted");
  EXPECT_THAT(refusal({"--mode=allreduce", "--sample-cost=zipf", "--", "python3", "train.py"}),
              HasSubstr("--sample-cost"));
}

TEST(SampleCost, HasNoPartInTheCheckOfEquality) {
  RunRequest base;
  base.sample_costs = *worker::SampleCosts::parse("zipf");
  EXPECT_TRUE(equality_job(base).sample_costs.are_equal());
}

}  // namespace
}  // namespace syncopate::experiments::sample_cost_rules
