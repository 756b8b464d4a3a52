// Microbatches and weights on demand under a sharded state: what is taken, recorded, named and refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/config/resolution.h"
#include "experiments/config/toml.h"
#include "experiments/lab/report/mode_of.h"
#include "experiments/lab/report/summary_text.h"
#include "experiments/lab/run/run_prediction.h"
#include "tests/experiments/config/typed_line.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kSharded = "--mode=sharded";
constexpr const char* kStage = "--stage=3";
constexpr const char* kOnDemand = "--gather=on-demand";

ResolvedRun run_of(const std::vector<const char*>& flags) {
  const Result<CommandLine> line = parse(flags);
  EXPECT_TRUE(line.ok()) << line.status().message();
  return presumed(line->config);
}

TEST(Microbatches, AreEightInAPipelineAndElseOne) {
  EXPECT_EQ(microbatches_of(run_of({"--mode=allreduce", "--pipeline=2"})), 8);
  EXPECT_EQ(microbatches_of(run_of({"--mode=allreduce"})), 1);
  EXPECT_EQ(microbatches_of(run_of({kSharded, kStage})), 1);
  const ResolvedRun cut = run_of({kSharded, kStage, "--microbatches=4", "--batch-size=32"});
  EXPECT_EQ(microbatches_of(cut), 4);
  EXPECT_EQ(microbatch_samples(cut), 8);
  EXPECT_THAT(to_toml(cut), HasSubstr("microbatches = 4"));
  EXPECT_EQ(from_toml_text(to_toml(cut))->microbatches, 4);
  EXPECT_THAT(describe(cut), HasSubstr("stage 3 in 4 microbatches"));
  EXPECT_EQ(microbatch_samples(run_of({"--mode=allreduce", "--pipeline=2", "--batch-size=32"})), 8);
}

TEST(Microbatches, AreRefusedWhereNothingIsCutAndWhereTheyDoNotDivide) {
  EXPECT_THAT(
      refusal({kSharded, "--stage=2", "--microbatches=4"}),
      StartsWith("--microbatches=4: has an effect only with a --pipeline of 2 or more, or --mode=sharded with"));
  EXPECT_EQ(refusal({kSharded, kStage, "--microbatches=3", "--batch-size=32"}),
            "--microbatches=3: a worker trains 32 samples a step, which are not cut into 3 alike; use a number that "
            "divides them, or another --batch-size");
}

TEST(WeightsOnDemand, AreTakenRecordedAndNamed) {
  const ResolvedRun run = run_of({kSharded, kStage, kOnDemand});
  EXPECT_TRUE(gathers_on_demand(run));
  EXPECT_THAT(to_toml(run), HasSubstr("gather = \"on-demand\""));
  EXPECT_TRUE(gathers_on_demand(*from_toml_text(to_toml(run))));
  EXPECT_EQ(mode_of(run), "sharded:on-demand");
  EXPECT_THAT(describe(run), HasSubstr("stage 3 on demand"));
  EXPECT_FALSE(form_of(run_of({kSharded, kStage, kOnDemand, "--cluster=simulated"}))) << "no closed form knows of it";
  EXPECT_FALSE(may_report_stalls(run)) << "workers are at different layers";
}

TEST(WeightsOnDemand, AreRefusedWhereTheyCannotBe) {
  EXPECT_EQ(refusal({kSharded, kOnDemand}),
            "--gather=on-demand: has an effect only with --mode=sharded with --stage=3; leave it out or add that");
  EXPECT_THAT(refusal({kSharded, kStage, "--gather=lazily"}), HasSubstr("gather must be collective or on-demand"));
  EXPECT_THAT(refusal({kSharded, kStage, kOnDemand, "--collective=mpi", "--launcher=mpirun"}),
              StartsWith("--gather=on-demand: each worker answers others while it computes, over wires of ours"));
  EXPECT_THAT(refusal({kSharded, kStage, kOnDemand, "--stall-warning=2"}),
              StartsWith("--stall-warning=2: has an effect only with"));
}

TEST(WeightsOnDemand, AreARowOfAComparison) {
  const Result<CommandLine> line = parse({"compare", "--modes=sharded:3,sharded:on-demand", "--microbatches=2"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  std::vector<std::string> modes;
  for (const ComparedRun& run : line->runs) {
    EXPECT_EQ(run.label, mode_of(presumed(run.config)));
    EXPECT_EQ(microbatches_of(run.config), 2);
    modes.push_back(run.label);
  }
  EXPECT_THAT(modes, ElementsAre("sharded:3", "sharded:on-demand"));
}

}  // namespace
}  // namespace syncopate::experiments
