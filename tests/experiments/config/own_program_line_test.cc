// A program of the person's own on the command line: behind --, or in --command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experiments/config/resolution.h"
#include "experiments/config/toml.h"
#include "tests/experiments/config/typed_line.h"
#include "tests/support/resolved.h"

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> labels(const CommandLine& line) {
  std::vector<std::string> result;
  for (const ComparedRun& run : line.runs) result.push_back(run.label);
  return result;
}

TEST(OwnProgramLine, TakesAllBehindDashesAsItStands) {
  const Result<CommandLine> line =
      parse({"--mode=allreduce", "--workers=2", "--", "python", "train.py", "--workers=9"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_THAT(line->config.command, ElementsAre("python", "train.py", "--workers=9"));
  EXPECT_EQ(line->config.workers, 2);
}

TEST(OwnProgramLine, KeepsWordsWithBlanksAndQuotesThroughARecord) {
  const Result<CommandLine> line =
      parse({"--mode=allreduce", "--workers=2", "--", "sh", "-c", "echo 'a  b' \"$X\" \\", ""});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_THAT(line->config.command, ElementsAre("sh", "-c", "echo 'a  b' \"$X\" \\", ""));
  const Result<ResolvedRun> again = from_toml_text(to_toml(resolved(line->config)));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->command, line->config.command);
}

TEST(OwnProgramLine, SaysWhatIsMissingOrGivenTwice) {
  EXPECT_EQ(refusal({"--mode=allreduce", "--"}),
            "--: no program follows; say which one each worker runs, as in -- python train.py");
  EXPECT_THAT(refusal({"--mode=allreduce", "--command=true", "--", "true"}),
              StartsWith("--command=true: the words behind -- name a program, too"));
  EXPECT_THAT(refusal({"--command='unfinished"}), StartsWith("--command='unfinished: "));
  EXPECT_THAT(refusal({"--mode=allreduce", "--", "python", "-c", "a\nb"}), HasSubstr("put the program into a file"));
}

TEST(OwnProgramLine, RefusesWhatTheProgramDecides) {
  EXPECT_EQ(refusal({"--mode=allreduce", "--model=lenet", "--", "python", "train.py"}),
            "--model=lenet: has no effect on a program of your own (python train.py); leave it out");
  EXPECT_THAT(refusal({"--mode=allreduce", "--epochs=3", "--", "true"}), StartsWith("--epochs=3: has no effect"));
  EXPECT_THAT(refusal({"--mode=allreduce", "--overlap", "--", "true"}), StartsWith("--overlap"));
  EXPECT_THAT(refusal({"compare", "--tune-rate=0.1,0.2", "--", "true"}), HasSubstr("has its own rate; leave it out"));
  EXPECT_THAT(refusal({"compare", "--modes=like:horovod", "--", "true"}), HasSubstr("your own program decides (true)"));
  EXPECT_THAT(refusal({"compare", "--modes=allreduce:gossip", "--", "true"}), HasSubstr("averages weights"));
}

TEST(OwnProgramLine, TakesOtherHostsOverSocketsAlone) {
  const Result<CommandLine> line =
      parse({"--mode=allreduce", "--hosts=node1:2,node2:2", "--remote-shell=rsh", "--", "python", "train.py"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(presumed(line->config).workers, 4);
  EXPECT_EQ(presumed(line->config).transport, TransportKind::kSockets);
  EXPECT_THAT(refusal({"--mode=allreduce", "--hosts=node1:2,node2:2", "--transport=shm", "--", "true"}),
              StartsWith("--transport=shm: connects processes of one host, and --hosts=node1:2,node2:2 names others"));
  EXPECT_TRUE(parse({"--mode=ps", "--hosts=node1:2", "--transport=shm", "--", "true"}).ok()) << "all are on one host";
}

TEST(OwnProgramLine, TakesHostsOfNamespaces) {
  const Result<CommandLine> line =
      parse({"--mode=ps", "--servers=3", "--workers=2", "--cluster=namespaces", "--fabric=racks:2", "--", "true"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_EQ(hosts_of(presumed(line->config)).size(), 2u) << "its servers are on the hosts of its ranks";
  EXPECT_THAT(refusal({"--mode=ps", "--cluster=namespaces", "--transport=shm", "--", "true"}),
              StartsWith("--transport=shm: connects processes of one host, and --cluster=namespaces has others"));
}

TEST(OwnProgramLine, RefusesAHostForServersAlone) {
  EXPECT_THAT(refusal({"--mode=ps", "--hosts=node1:2,node2:0", "--", "true"}),
              HasSubstr("leave hosts without slots out"));
}

TEST(OwnProgramLine, TakesAVirtualClusterAndWhatOnlyThatHas) {
  for (const char* only : {"--steps=5", "--straggler=1:3x", "--compute=5ms"}) {
    EXPECT_EQ(refusal({"--mode=allreduce", "--workers=2", "--cluster=simulated", only, "--", "true"}), "accepted")
        << only;
    EXPECT_THAT(refusal({"--mode=allreduce", "--workers=2", only, "--", "true"}),
                HasSubstr(std::string(only).substr(0, 5)))
        << only;
  }
  EXPECT_THAT(refusal({"--mode=allreduce", "--cluster=simulated", "--compute=v100", "--", "true"}),
              HasSubstr("must be the time of a step"));
}

TEST(OwnProgramLine, RefusesALinkForSharedMemory) {
  EXPECT_THAT(refusal({"--mode=ps", "--shape=1gbit", "--transport=shm", "--", "true"}),
              HasSubstr("leave --transport=shm out"));
}

TEST(OwnProgramLine, ComparesTheModesThatBothSumGradients) {
  const Result<CommandLine> line = parse({"compare", "--workers=2", "--", "python", "train.py"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_THAT(labels(*line), ElementsAre("allreduce", "ps:sync", "ps:async"));
  for (const ComparedRun& run : line->runs) EXPECT_THAT(run.config.command, ElementsAre("python", "train.py"));
}

TEST(OwnProgramLine, LetsServersListenWhereSocketsAreAskedFor) {
  RunRequest request;
  request.mode = Mode::kPs;
  request.workers = 2;
  request.command = {"true"};
  request.transport = TransportKind::kSockets;
  const ResolvedRun run = resolved(request);
  EXPECT_EQ(run.transport, TransportKind::kTcp);
  EXPECT_EQ(run.device, DeviceKind::kCpu);
}

}  // namespace
}  // namespace syncopate::experiments
