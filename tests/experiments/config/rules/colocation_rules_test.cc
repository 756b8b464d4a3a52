#include "experiments/config/rules/colocation_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/experiments/config/typed_line.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

std::string spare_refusal(std::vector<const char*> flags) {
  flags.insert(flags.begin(), {"--mode=ps", "--servers=colocated+2"});
  return refusal(std::move(flags));
}

TEST(ColocationRules, NoProcessOfMpirunIsBothAWorkerAndAServer) {
  EXPECT_THAT(refusal({"--mode=ps", "--servers=colocated", "--launcher=mpirun"}),
              StartsWith("--servers=colocated: a process of mpirun is a worker or a server"));
  EXPECT_THAT(spare_refusal({"--workers=4", "--launcher=mpirun"}),
              StartsWith("--servers=colocated+2: a process of mpirun is a worker or a server"));
}

TEST(ColocationRules, TakeSpareServersWhereLinksCanBeFilledAlike) {
  for (const char* sharding : {"--sharding=balanced", "--sharding=least-loaded", "--sharding=whole"}) {
    EXPECT_EQ(spare_refusal({"--workers=3", sharding}), "accepted") << sharding;
  }
  EXPECT_EQ(spare_refusal({"--workers=3", "--cluster=simulated"}), "accepted");
  EXPECT_EQ(spare_refusal({"--workers=3", "--cluster=namespaces"}), "accepted");
  EXPECT_EQ(spare_refusal({"--workers=3", "--hosts=A,B,C,D:0,E:0"}), "accepted");
  EXPECT_EQ(spare_refusal({"--workers=6", "--cluster=simulated", "--hosts=A:2,B:2,D:0,C:2,E:0"}), "accepted");
  EXPECT_EQ(spare_refusal({"--workers=3", "--hosts=localhost:3"}), "accepted") << "all on this machine";
}

TEST(ColocationRules, RefuseAsManySpareServersAsHostsWithWorkers) {
  EXPECT_EQ(spare_refusal({"--workers=2"}),
            "--servers=colocated+2: 2 spare servers leave nothing for those of 2 hosts with workers, and hold all by "
            "themselves; use fewer than 2, or --servers=2");
  EXPECT_THAT(spare_refusal({"--workers=1"}), HasSubstr("of 1 host with workers"));
  EXPECT_THAT(spare_refusal({"--workers=4", "--cluster=simulated", "--hosts=A:2,B:2,C:0,D:0"}),
              HasSubstr("use fewer than 2, or --servers=2"));
  EXPECT_THAT(refusal({"--mode=ps", "--workers=1024", "--servers=colocated+1"}),
              StartsWith("--servers=colocated+1: 1025 servers with those of 1024 workers; use at most 1024 in all"));
}

TEST(ColocationRules, RefuseSpareServersWithoutHostsOfTheirOwn) {
  EXPECT_EQ(
      spare_refusal({"--workers=4", "--hosts=A,B,C,D,E:0"}),
      "--servers=colocated+2: spare servers have hosts of their own, and --hosts=A:1,B:1,C:1,D:1,E:0 has 1 without "
      "slots; give one for each, as in --hosts=A:2,B:2,C:0");
  EXPECT_THAT(spare_refusal({"--workers=4", "--cluster=namespaces:4x1"}), HasSubstr("has 0 without slots"));
  EXPECT_THAT(spare_refusal({"--workers=5", "--hosts=A:2,B:2,C,D:0,E:0"}),
              HasSubstr("unequal numbers of the 5 workers"));
}

TEST(ColocationRules, RefuseWhatTheSplitDoesNotFit) {
  EXPECT_THAT(spare_refusal({"--workers=4", "--model=ncf", "--dataset=zipf-ratings"}),
              AllOf(StartsWith("--servers=colocated+2: "), HasSubstr("rows of tables")));
  EXPECT_THAT(
      refusal({"--mode=hybrid", "--servers=colocated+2", "--workers=4", "--model=ncf", "--dataset=zipf-ratings"}),
      HasSubstr("rows of tables"));
  EXPECT_THAT(spare_refusal({"--workers=4", "--pipeline=2"}), HasSubstr("leave --pipeline=2 out"));
  for (const char* sharding : {"--sharding=tensor", "--sharding=hash"}) {
    EXPECT_THAT(spare_refusal({"--workers=4", sharding}),
                HasSubstr(std::string(sharding) + " gives shards equal parts"));
  }
}

TEST(ColocationRules, RefuseWhatColocatedServersDo) {
  EXPECT_THAT(spare_refusal({"--workers=4", "--replicas=1"}), HasSubstr("without --servers=colocated"));
  EXPECT_THAT(spare_refusal({"--workers=4", "--fault=kill:server4@step9"}),
              HasSubstr("with --servers=colocated a server is in its worker's process"));
  EXPECT_THAT(spare_refusal({"--workers=4", "--fault=cut:worker2@5s+2s"}),
              HasSubstr("with --servers=colocated a worker and its server share one"));
}

}  // namespace
}  // namespace syncopate::experiments
