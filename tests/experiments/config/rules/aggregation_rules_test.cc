#include "experiments/config/rules/aggregation_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "experiments/config/rules/survival_rules.h"
#include "tests/experiments/config/typed_line.h"
#include "tests/support/resolved.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Flags = std::vector<const char*>;

std::string refusal_of_aggregation(const Flags& flags) {
  Flags all{"--mode=ps", "--consistency=sync", "--aggregation=host"};
  all.insert(all.end(), flags.begin(), flags.end());
  return refusal(all);
}

TEST(AggregationRules, AcceptSeveralHostsOfWhichOneHasSeveralWorkers) {
  for (const char* where : {"--hosts=a:4,b:4", "--hosts=localhost:2,b:1", "--cluster=namespaces:2x4"}) {
    EXPECT_EQ(refusal_of_aggregation({where}), "accepted");
  }
  EXPECT_EQ(refusal_of_aggregation({"--cluster=simulated", "--hosts=2x4"}), "accepted");
  EXPECT_EQ(refusal_of_aggregation({"--cluster=namespaces:2x4,link:1gbit+1ms", "--workers=5", "--servers=2",
                                    "--checkpoint-every=10", "--straggler=1:2x", "--fault=kill:worker1@step5"}),
            "accepted");
  EXPECT_EQ(refusal({"--mode=ps", "--consistency=sync", "--aggregation=off"}), "accepted");
}

TEST(AggregationRules, RefuseItWhereItHasNoEffect) {
  for (const Flags& mode :
       {Flags{"--mode=allreduce"}, Flags{"--mode=local"}, Flags{"--mode=ps"},
        Flags{"--mode=ps", "--consistency=bounded:2"}, Flags{"--mode=ps", "--consistency=local-sgd:4"}}) {
    Flags flags = mode;
    flags.push_back("--aggregation=host");
    EXPECT_THAT(refusal(flags), HasSubstr("--consistency=sync")) << mode.back();
  }
  EXPECT_THAT(refusal_of_aggregation({"--workers=4"}),
              StartsWith("--aggregation=host: all workers are on one host, so that pushes cross no link; use several"));
  EXPECT_THAT(refusal_of_aggregation({"--hosts=localhost:4"}), HasSubstr("all workers are on one host"));
  EXPECT_THAT(refusal_of_aggregation({"--hosts=a:1,b:1"}),
              HasSubstr("no host of a:1,b:1 has several of the 2 workers"));
  EXPECT_THAT(refusal_of_aggregation({"--cluster=namespaces:4"}), HasSubstr("no host of 4x1 has several"));
  EXPECT_THAT(refusal_of_aggregation({"--cluster=simulated", "--workers=4"}),
              HasSubstr("every simulated worker has a host of its own; name hosts with several, as in --hosts=2x4"));
  EXPECT_THAT(refusal_of_aggregation({"--cluster=simulated", "--hosts=1x4"}), HasSubstr("all workers are on one host"));
}

TEST(AggregationRules, RefuseWhatIsNotBuiltAndSayWhatWouldBeRight) {
  const auto refused = [](const Flags& flags) {
    Flags all{"--hosts=a:2,b:2"};
    all.insert(all.end(), flags.begin(), flags.end());
    const std::string message = refusal_of_aggregation(all);
    EXPECT_THAT(message, StartsWith("--aggregation=host: "));
    return message;
  };
  EXPECT_THAT(refused({"--device=cuda"}), HasSubstr("use --device=cpu"));
  EXPECT_THAT(refused({"--launcher=mpirun"}), HasSubstr("--launcher=mpirun"));
  EXPECT_THAT(refused({"--backup-workers=1"}), HasSubstr("leave --backup-workers=1 out"));
  EXPECT_THAT(refused({"--compress=int8"}), HasSubstr("leave --compress=int8 out"));
  EXPECT_THAT(refused({"--model=ncf", "--dataset=zipf-ratings"}), HasSubstr("use --embeddings=dense"));
  EXPECT_THAT(refused({"--overlap-forward"}), HasSubstr("leave --overlap-forward out"));
  EXPECT_THAT(refused({"--replicas=1"}), HasSubstr("leave --replicas=1 out"));
  EXPECT_THAT(refused({"--respawn=0.5"}), HasSubstr("leave --respawn=0.5 out"));
  EXPECT_THAT(refused({"--fault=cut:worker1@step5+100ms"}), HasSubstr("most workers have no link"));
  EXPECT_THAT(refused({"--", "python", "train.py"}), HasSubstr("a program of your own"));
}

TEST(AggregationRules, LetALostWorkerEndTheRunAndAServerGoBack) {
  RunRequest request;
  request.mode = Mode::kPs;
  request.consistency = *ps::Consistency::parse("sync");
  request.hosts = *parse_hosts("a:2,b:2");
  request.checkpoint_every = CheckpointInterval{.steps = 10};
  EXPECT_TRUE(recovery_of(resolved(request)).survives_workers);
  request.aggregation = Aggregation::kHost;
  const Recovery recovery = recovery_of(resolved(request));
  EXPECT_FALSE(recovery.survives_workers);
  EXPECT_TRUE(recovery.goes_back);
}

}  // namespace
}  // namespace syncopate::experiments
