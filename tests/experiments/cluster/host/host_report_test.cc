#include "experiments/cluster/host/host_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/cluster/host/build_facts.h"

namespace syncopate::experiments {
namespace {

HostReport report_with_gpu() {
  HostReport report{.fingerprint = "0123456789abcdef", .interface = "eth0"};
  report.environment.host = "node1";
  report.environment.cores = 64;
  report.environment.cpu_model = "a \"fast\" one";
  report.environment.commit = "c0ffee";
  report.machine.gpu_program = true;
  report.machine.gpus = {{.name = "NVIDIA H200", .memory_bytes = std::size_t{141} << 30, .major = 9, .minor = 0}};
  return report;
}

TEST(HostReport, ComesBackFromItsLine) {
  const std::string line = to_json_line(report_with_gpu());
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const Result<HostReport> again = parse_host_report(line);
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->fingerprint, "0123456789abcdef");
  EXPECT_EQ(again->interface, "eth0");
  EXPECT_EQ(again->environment.host, "node1");
  EXPECT_EQ(again->environment.cores, 64);
  EXPECT_EQ(again->environment.cpu_model, "a \"fast\" one");
  EXPECT_TRUE(again->machine.gpu_program);
  ASSERT_EQ(again->machine.gpus.size(), 1u);
  EXPECT_EQ(again->machine.gpus[0].name, "NVIDIA H200");
  EXPECT_EQ(again->machine.gpus[0].memory_bytes, std::size_t{141} << 30);
  EXPECT_EQ(to_json_line(*again), line);
}

TEST(HostReport, IsFoundBehindTheGreetingsOfAShell) {
  const Result<HostReport> report =
      parse_host_report("Welcome to node1!\n{\"not\": \"ours\"}\n" + to_json_line(report_with_gpu()) + "bye\n");
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->environment.host, "node1");
}

TEST(HostReport, IsNotMadeOfAnythingElse) {
  for (const char* text : {"", "hello\n", "{\"not\": \"ours\"}\n", "[1, 2]\n", "{\"syncopate_host\""}) {
    EXPECT_EQ(parse_host_report(text).status().code(), Code::kDataLoss) << text;
  }
}

// Its fingerprint is then none of ours.
TEST(HostReport, OfAnotherVersionHasNoFingerprint) {
  const Result<HostReport> report = parse_host_report("{\"syncopate_host\": 2, \"fingerprint\": 7}\n");
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->fingerprint, "");
}

TEST(HostReport, OfAnotherFormatHasNoFingerprintThoughAllFieldsAreThere) {
  std::string line = to_json_line({.fingerprint = "abc"});
  const std::string format = "\"syncopate_host\":1";
  ASSERT_NE(line.find(format), line.npos) << line;
  line.replace(line.find(format), format.size(), "\"syncopate_host\":2");
  const Result<HostReport> report = parse_host_report(line);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->fingerprint, "");
}

TEST(HostReport, OfThisHostHasThisProgramsFingerprint) {
  const HostReport report = this_host(false, "127.0.0.1");
  EXPECT_EQ(report.fingerprint, source_fingerprint());
  EXPECT_THAT(report.fingerprint, testing::MatchesRegex("[0-9a-f]{16}"));
  EXPECT_EQ(report.interface, "lo");
  EXPECT_GT(report.environment.cores, 0);
}

}  // namespace
}  // namespace syncopate::experiments
