#include "experiments/config/namespace_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/config/resolution.h"
#include "experiments/config/toml.h"
#include "tests/experiments/config/typed_line.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;

TEST(ANamespaceCluster, IsANumberOfHostsWithSlotsAndALinkIfWanted) {
  EXPECT_EQ(to_text(NamespaceCluster::parse("8")->hosts), "8x1");
  EXPECT_EQ(to_text(NamespaceCluster::parse("4x2")->hosts), "4x2");
  EXPECT_FALSE(NamespaceCluster::parse("8")->link);
  EXPECT_EQ(NamespaceCluster::parse("4x2,link:100mbit+2ms")->link->to_string(), "100mbit+2ms");
}

TEST(ANamespaceCluster, RefusesWhatIsNone) {
  for (const char* text : {"", "0", "x2", "4x", "65", "A:2,B:2", "A", "4,", "4,link:", "4,link:fast", "4,1gbit",
                           "4,link:1gbit,link:1gbit", "-1", "4 "}) {
    EXPECT_FALSE(NamespaceCluster::parse(text).ok()) << text;
  }
}

ResolvedRun run_of(std::vector<const char*> words) {
  const Result<CommandLine> line = parse(std::move(words));
  EXPECT_TRUE(line.ok()) << line.status().message();
  return line.ok() ? presumed(line->config) : ResolvedRun();
}

TEST(NamespacesOnALine, AreHostsAndTheirLink) {
  const Result<CommandLine> line = parse({"--mode=allreduce", "--cluster=namespaces:4x2,link:1gbit"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(line->config.cluster, ClusterKind::kNamespaces);
  EXPECT_EQ(workers_of(line->config), 8);
  EXPECT_EQ(line->config.shape->to_string(), "1gbit");
}

TEST(NamespacesOnALine, AreWhatTheRecordOfTheirRunSays) {
  const ResolvedRun run = run_of({"--mode=ps", "--cluster=namespaces:4x2,link:1gbit+1ms"});
  const Result<ResolvedRun> again = from_toml_text(to_toml(run));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->cluster, ClusterKind::kNamespaces);
  EXPECT_EQ(again->hosts, run.hosts);
  EXPECT_EQ(again->shape, run.shape);
}

// As in a simulated cluster.
TEST(NamespacesOnALine, AreOneForEachProcessWhereNobodySaysHowMany) {
  const ResolvedRun run = run_of({"--mode=ps", "--workers=3", "--servers=2", "--cluster=namespaces"});
  EXPECT_EQ(own_hosts_of(run), 5u);
  EXPECT_EQ(to_text(hosts_of(run)), "5x1");
}

TEST(NamespacesOnALine, HaveARateOfTheKernelAndADelayOfTheTransport) {
  const auto emulated = [](const char* cluster) { return emulated_link_of(run_of({"--mode=allreduce", cluster})); };
  EXPECT_FALSE(emulated("--cluster=namespaces:4,link:1gbit"));
  EXPECT_EQ(emulated("--cluster=namespaces:4,link:1gbit+2ms"),
            (LinkShape{.bits_per_second = 0, .delay = std::chrono::milliseconds(2)}));
}

TEST(NamespacesOnALine, RefuseWhatContradictsThem) {
  const std::pair<std::vector<const char*>, std::string> cases[] = {
      {{"--cluster=namespaces:4", "--hosts=2x1"}, "has 4x1 hosts, and --hosts=2x1 others"},
      {{"--cluster=namespaces", "--hosts=A:2"}, "--hosts=A:2: they have numbers"},
      {{"--cluster=namespaces:2,link:1gbit", "--shape=2gbit"}, "link:1gbit is each host's, and --shape=2gbit"},
      {{"--cluster=namespaces:4", "--workers=5"}, "--hosts=4x1 has 4 slots"},
      {{"--cluster=namespaces", "--workers=65"}, "at most 64"},
      {{"--cluster=namespaces:4", "--device=cuda"}, "--device=cuda: all hosts would compute on"},
      {{"--cluster=namespaces:4", "--transport=shm"}, "connects processes of one host"},
      {{"--cluster=namespaces:4", "--fabric=racks:5"}, "use at most as many racks"},
      {{"--cluster=namespaces:4", "--fabric=racks:2,oversubscription:2"}, "a part of which rate?"},
      {{"--cluster=namespaces:2", "--listen-address=10.0.0.1"}, "has an effect only with"},
      {{"--cluster=namespaces:2,link:1gbit+1ms", "--collective=mpi", "--launcher=mpirun"}, "cannot be shaped"},
  };
  for (const auto& [words, why] : cases) {
    std::vector<const char*> line{"--mode=allreduce"};
    line.insert(line.end(), words.begin(), words.end());
    EXPECT_THAT(refusal(line), HasSubstr(why));
  }
}

}  // namespace
}  // namespace syncopate::experiments
