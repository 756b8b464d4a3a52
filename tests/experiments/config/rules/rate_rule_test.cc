#include "experiments/config/rules/rate_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "experiments/config/comparison.h"
#include "tests/experiments/config/typed_line.h"
#include "tests/support/resolved.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// The resolved config of `mode`, as compare makes it of a job of 4 workers with batches of 32.
ResolvedRun row(const std::string& mode, int backup_workers = 0) {
  RunRequest base;
  base.workers = 4, base.batch_size = 32, base.backup_workers = backup_workers;
  const Result<std::vector<ComparedRun>> runs = comparison_runs(base, mode);
  EXPECT_TRUE(runs.ok()) << runs.status().message();
  return resolved(runs->front().config);
}

// How many samples stand behind one step of the weights that are evaluated, by hand.
const std::map<std::string, std::int64_t> kSamplesAnUpdate = {{"local", 128},
                                                              {"allreduce", 128},
                                                              {"allreduce:ring", 128},
                                                              {"ps:sync", 128},
                                                              {"ps:bounded:0", 32},
                                                              {"ps:bounded:3", 32},
                                                              {"ps:async", 32},
                                                              {"ps:sync:pipeline:2", 128},
                                                              {"ps:async:pipeline:2", 64},
                                                              {"ps:bounded:3:pipeline:4", 128},
                                                              {"ps:softsync:1", 128},
                                                              {"ps:softsync:2", 64},
                                                              {"ps:softsync:3", 32},
                                                              {"ps:softsync:4", 32},
                                                              {"ps:local-sgd:8", 128},
                                                              {"ps:easgd:8", 128},
                                                              {"allreduce:sync-every:8", 128},
                                                              {"allreduce:gossip", 128},
                                                              {"allreduce:gossip-async", 128},
                                                              {"allreduce:gossip-async:4", 128}};

TEST(RateRule, KnowsTheSamplesOfAnUpdateOfEveryMode) {
  for (const auto& [mode, samples] : kSamplesAnUpdate) EXPECT_EQ(samples_an_update(row(mode)), samples) << mode;
  EXPECT_EQ(samples_an_update(row("ps:sync", 1)), 3 * 32);
}

TEST(RateRule, MakesRateTimesUpdatesAPassTheSameInEveryModePerSample) {
  for (const auto& [mode, samples] : kSamplesAnUpdate) {
    const ResolvedRun config = row(mode);
    const double rate = ruled_rate(RateRule::kPerSample, 0.1, samples_an_update(config), 128);
    EXPECT_DOUBLE_EQ(rate * updates_a_pass(config, 60000), 0.1 * 60000 / 128) << mode;
    EXPECT_EQ(ruled_rate(RateRule::kPerUpdate, 0.1, samples_an_update(config), 128), 0.1) << mode;
  }
  EXPECT_DOUBLE_EQ(ruled_rate(RateRule::kPerSample, 0.1, samples_an_update(row("ps:async")), 128), 0.025);
  EXPECT_DOUBLE_EQ(ruled_rate(RateRule::kPerSample, 0.1, samples_an_update(row("ps:sync", 1)), 128), 0.075);
}

TEST(RateRule, HasNames) {
  EXPECT_EQ(*parse_rate_rule("per-sample"), RateRule::kPerSample);
  EXPECT_EQ(*parse_rate_rule("per-update"), RateRule::kPerUpdate);
  EXPECT_EQ(parse_rate_rule("none").status().message(), "--rate-rule=none: rate rule must be per-sample or per-update");
}

TEST(LinearSchedule, ScalesByTheBatchesOfAnUpdate) {
  const auto growth = [](std::vector<const char*> flags) {
    flags.insert(flags.end(), {"--lr-schedule=linear", "--workers=4"});
    const Result<CommandLine> line = parse(flags);
    EXPECT_TRUE(line.ok()) << line.status().message();
    return batches_an_update(resolved(line->config));
  };
  EXPECT_EQ(growth({"--mode=allreduce"}), 4);
  EXPECT_EQ(growth({"--mode=ps", "--consistency=sync"}), 4);
  EXPECT_EQ(growth({"--mode=ps", "--consistency=sync", "--backup-workers=1"}), 3);
  EXPECT_EQ(growth({"--mode=ps", "--consistency=softsync:2"}), 2);
}

TEST(LinearSchedule, IsRefusedWhereAnUpdateIsOfOneBatch) {
  for (const char* consistency : {"async", "bounded:2", "softsync:3"}) {
    const std::string flag = std::string("--consistency=") + consistency;
    EXPECT_THAT(refusal({"--mode=ps", "--workers=4", flag.c_str(), "--lr-schedule=linear,warmup:1"}),
                StartsWith(std::string("--lr-schedule=linear,warmup:1: linear scales the rate by the growth of an "
                                       "update's minibatch, and under --consistency=") +
                           consistency + " an update is of one worker's batch"));
  }
  EXPECT_THAT(refusal({"--mode=ps", "--workers=2", "--consistency=sync", "--backup-workers=1", "--lr-schedule=linear"}),
              HasSubstr("an update is of one worker's batch"));
  for (const char* averaging : {"--consistency=local-sgd:4", "--consistency=easgd:4"}) {
    EXPECT_THAT(refusal({"--mode=ps", averaging, "--lr-schedule=linear"}), HasSubstr("updates of its own batch"));
  }
  for (const char* averaging : {"--sync-every=4", "--gossip", "--gossip=async"}) {
    EXPECT_THAT(refusal({"--mode=allreduce", averaging, "--lr-schedule=linear"}), HasSubstr("updates of its own"));
  }
}

TEST(LinearSchedule, IsRefusedWhereTheMinibatchIsHeldFixed) {
  EXPECT_THAT(refusal({"--mode=allreduce", "--global-batch-size=128", "--lr-schedule=linear"}),
              HasSubstr("--global-batch-size=128 holds it fixed"));
}

}  // namespace
}  // namespace syncopate::experiments
