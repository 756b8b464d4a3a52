#include "experiments/config/rules/survival_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;

ResolvedRun config_of(Mode mode, LauncherKind launcher = LauncherKind::kLocal) {
  ResolvedRun config;
  config.mode = mode;
  config.launcher = launcher;
  return config;
}

TEST(RecoveryOf, ParameterServersGoOnWithoutWorkersUnderEveryConsistency) {
  for (const std::string consistency : {"sync", "bounded:0", "softsync:2", "async", "local-sgd:3", "easgd:3"}) {
    ResolvedRun config = config_of(Mode::kPs);
    config.consistency = *ps::Consistency::parse(consistency);
    EXPECT_TRUE(recovery_of(config).survives_workers) << consistency;
    EXPECT_FALSE(recovery_of(config).regroups()) << consistency;
  }
}

TEST(RecoveryOf, ColocatedServersAreLostWithAnyWorker) {
  ResolvedRun config = config_of(Mode::kPs);
  config.checkpoint_every = CheckpointInterval{.steps = 10};
  EXPECT_TRUE(recovery_of(config).goes_back);
  config.colocated = true;
  for (config.spare_servers = 0; config.spare_servers < 2; ++config.spare_servers) {
    EXPECT_FALSE(recovery_of(config).survives_workers);
    EXPECT_FALSE(recovery_of(config).regroups());
    EXPECT_FALSE(recovery_of(config).goes_back);
    EXPECT_FALSE(may_have_replicas(config));
    EXPECT_FALSE(may_respawn(config));
  }
}

TEST(RecoveryOf, AllreduceDoesIfItIsElastic) {
  ResolvedRun config = config_of(Mode::kAllreduce);
  EXPECT_FALSE(recovery_of(config).survives_workers);
  config.elastic = true;
  EXPECT_TRUE(recovery_of(config).survives_workers);
  EXPECT_TRUE(recovery_of(config).regroups_without_worker);
}

TEST(RecoveryOf, NothingIsSurvivedUnderMpirun) {
  for (const Mode mode : {Mode::kPs, Mode::kAllreduce}) {
    ResolvedRun config = config_of(mode, LauncherKind::kMpirun);
    config.respawn_seconds = 1;
    config.replicas = 1;
    EXPECT_FALSE(recovery_of(config).survives_workers);
    EXPECT_FALSE(recovery_of(config).regroups());
  }
}

// Neither the sums go on without a worker, nor do rows without their server.
TEST(RecoveryOf, NothingIsSurvivedWithServersBesideSums) {
  ResolvedRun config = config_of(Mode::kHybrid);
  config.checkpoint_every = CheckpointInterval{.steps = 10};
  config.respawn_seconds = 1;
  config.replicas = 1;
  EXPECT_FALSE(recovery_of(config).survives_workers);
  EXPECT_FALSE(recovery_of(config).regroups());
}

TEST(RecoveryOf, SaysWhenWhatIsLostIsStartedAgain) {
  ResolvedRun config = config_of(Mode::kPs);
  EXPECT_EQ(recovery_of(config).respawn_after, std::nullopt);
  config.respawn_seconds = 1.5;
  EXPECT_EQ(recovery_of(config).respawn_after, from_seconds(1.5));
  config.mode = Mode::kAllreduce;
  EXPECT_EQ(recovery_of(config).respawn_after, std::nullopt);
}

TEST(ValidateSurvival, RefusesWhatCannotLoseARank) {
  ResolvedRun config = config_of(Mode::kAllreduce);
  config.elastic = true;
  EXPECT_TRUE(validate_survival(config).ok());
  config.collective = CollectiveKind::kMpi;
  EXPECT_THAT(validate_survival(config).message(), HasSubstr("mpirun ends all processes"));
  config.collective = CollectiveKind::kNccl;
  EXPECT_THAT(validate_survival(config).message(), HasSubstr("NCCL"));
  config.collective = CollectiveKind::kRing;
  for (const Gossip gossip : {Gossip::kInStep, Gossip::kAsync}) {
    config.gossip = gossip;
    EXPECT_THAT(validate_survival(config).message(), HasSubstr("--gossip"));
    EXPECT_FALSE(recovery_of(config).survives_workers);
  }
}

}  // namespace
}  // namespace syncopate::experiments
