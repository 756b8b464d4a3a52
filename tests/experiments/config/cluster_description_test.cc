#include "experiments/config/cluster_description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "experiments/config/options/given_options.h"
#include "experiments/config/resolution.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kWhole =
    "# a test\n"
    "link = \"25gbit+38us\"\n"
    "inside = \"100gbit+4us\"\n"
    "compute = \"mlp.json\"\n"
    "sum = \"11GB/s\"\n"
    "update.adam = \"3.1GB/s\"\n"
    "encode.int8 = \"900MB/s\"\n"
    "decode.int8 = \"2GB/s\"\n";

std::string refused(const std::string& text) { return read_cluster(text).status().message(); }

ResolvedRun run_with(const GivenOptions& given) {
  const Result<RunRequest> request = apply_options(given);
  EXPECT_TRUE(request.ok()) << request.status().message();
  return presumed(request.ok() ? *request : RunRequest());
}

class AClusterFile : public testing::Test {
 protected:
  // Returns the option that names a file with this text.
  std::string with(const std::string& text) {
    std::ofstream(path_) << text;
    return "simulated:" + path_;
  }

  const testing_support::TemporaryFolder folder_;
  const std::string path_ = folder_.path() / "cluster.toml";
};

TEST(AClusterDescription, IsReadAsItIsWritten) {
  const Result<ClusterDescription> cluster = read_cluster(kWhole);
  ASSERT_TRUE(cluster.ok()) << cluster.status().message();
  EXPECT_EQ(cluster->link->bits_per_second, 25'000'000'000);
  EXPECT_EQ(cluster->inside->delay, std::chrono::microseconds(4));
  EXPECT_EQ(cluster->sum, 11e9);
  const std::string text = to_toml(*cluster, "# again\n");
  EXPECT_THAT(text, StartsWith("# again\nlink = \"25gbit+38us\""));
  EXPECT_EQ(*read_cluster(text), *cluster);
}

TEST(AClusterDescription, HasTheRatesOfTheRunsOptimizerAndCodec) {
  const ClusterDescription cluster = *read_cluster(kWhole);
  EXPECT_EQ(cluster.processing_of("adam", "int8").to_string(), "sum:11GB/s,update:3.1GB/s,encode:900MB/s,decode:2GB/s");
  EXPECT_EQ(cluster.processing_of("sgd", "topk:0.01").to_string(), "sum:11GB/s");
  EXPECT_EQ(ClusterDescription().processing_of("adam", "").source, ProcessingModel::Source::kNone);
}

TEST(AClusterDescription, SaysWhatIsWrong) {
  EXPECT_THAT(refused("lnk = \"1gbit\"\n"), HasSubstr("lnk: no such entry; did you mean link?"));
  EXPECT_THAT(refused("update.adm = \"1GB/s\"\n"), HasSubstr("did you mean update.adam?"));
  EXPECT_THAT(refused("link = \"fast\"\n"), StartsWith("link = 'fast': must be RATE"));
  EXPECT_THAT(refused("sum = \"4\"\n"), StartsWith("sum = '4': must be bytes a second"));
  EXPECT_THAT(refused("compute = \"soon\"\n"), StartsWith("compute = 'soon': must be solo"));
  EXPECT_EQ(refused("sum = \"4GB/s\"\nsum = \"4GB/s\"\n"), "sum: given twice; once is enough");
  EXPECT_THAT(refused("[link]\n"), StartsWith("line 1:"));
  EXPECT_THAT(refused("# cut off\n"), StartsWith("says nothing of a cluster"));
}

TEST_F(AClusterFile, SaysWhatTheRunDoesNot) {
  const std::string cluster = with(kWhole);
  const ResolvedRun run = run_with({{"mode", "allreduce"}, {"cluster", cluster}, {"compress", "int8"}});
  EXPECT_EQ(run.cluster, ClusterKind::kSimulated);
  EXPECT_EQ(run.shape->to_string(), "25gbit+38us");
  EXPECT_EQ(run.inside.to_string(), "100gbit+4us");
  EXPECT_EQ(run.compute.profile, folder_.path() / "mlp.json");  // beside the file
  EXPECT_EQ(run.processing.to_string(), "sum:11GB/s,update:3.1GB/s,encode:900MB/s,decode:2GB/s");
}

TEST_F(AClusterFile, GivesWayToWhatTheRunSays) {
  const ResolvedRun run = run_with({{"mode", "allreduce"},
                                    {"cluster", with(kWhole)},
                                    {"shape", "1gbit"},
                                    {"inside", "2gbit"},
                                    {"compute", "5ms"},
                                    {"processing", "none"}});
  EXPECT_EQ(run.shape->to_string(), "1gbit");
  EXPECT_EQ(run.inside.to_string(), "2gbit");
  EXPECT_EQ(run.compute.to_string(), "5ms");
  EXPECT_EQ(run.processing.to_string(), "none");
}

// What nobody says is as without a file: solo comes with solo.
TEST_F(AClusterFile, MaySayLittle) {
  const ResolvedRun described = run_with({{"mode", "ps"}, {"cluster", with("inside = \"40gbit+5us\"\n")}});
  const ResolvedRun usual = run_with({{"mode", "ps"}, {"cluster", "simulated"}});
  for (const ResolvedRun& run : {described, usual}) {
    EXPECT_EQ(run.shape, usual_simulated_link());
    EXPECT_TRUE(run.compute.is_solo());
    EXPECT_EQ(run.processing.source, ProcessingModel::Source::kSolo);
  }
}

TEST_F(AClusterFile, IsNamedInWhatIsWrongWithIt) {
  const std::string cluster = with("sum = 3\n");
  EXPECT_THAT(apply_options({{"cluster", cluster}}).status().message(),
              StartsWith("--cluster=" + cluster + ": " + path_ + ": sum = '3': must be"));
  EXPECT_THAT(apply_options({{"cluster", "simulated:/nowhere.toml"}}).status().message(), HasSubstr("cannot be read"));
  for (const char* text : {"simulated:", "fake", "real:x"}) {
    EXPECT_THAT(apply_options({{"cluster", text}}).status().message(),
                HasSubstr("cluster must be real, simulated, simulated:FILE or namespaces:HOSTS"));
  }
}

}  // namespace
}  // namespace syncopate::experiments
