#include "experiments/cluster/plan/command_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/support/resolved.h"

namespace syncopate::experiments {
namespace {

using testing::Contains;
using testing::IsSupersetOf;
using testing::Key;
using testing::Not;
using testing::Pair;

RunRequest of_two(Mode mode) {
  RunRequest request;
  request.mode = mode;
  request.workers = 2;
  request.command = {"python", "train.py"};
  return request;
}

std::map<std::string, std::string> given(const RunRequest& request, int rank = 1) {
  const auto variables = command_environment(resolved(request), rank);
  const std::map<std::string, std::string> by_name(variables.begin(), variables.end());
  EXPECT_EQ(by_name.size(), variables.size()) << "none is given twice";
  return by_name;
}

TEST(CommandEnvironment, SaysWhoAProcessIsAsOtherLaunchersDo) {
  EXPECT_THAT(given(of_two(Mode::kAllreduce)),
              IsSupersetOf({Pair("RANK", "1"), Pair("LOCAL_RANK", "1"), Pair("WORLD_SIZE", "2"),
                            Pair("LOCAL_WORLD_SIZE", "2"), Pair("MASTER_ADDR", "127.0.0.1")}));
}

TEST(CommandEnvironment, AsksForAllreduceInSharedMemoryAsTheRunIs) {
  RunRequest request = of_two(Mode::kAllreduce);
  request.timeout_seconds = 7.5;
  request.seed = 42;
  const auto variables = given(request);
  EXPECT_THAT(variables, IsSupersetOf({Pair("SYNCOPATE_MODE", "allreduce"), Pair("SYNCOPATE_WIRE", "shm"),
                                       Pair("SYNCOPATE_TIMEOUT", "7.5"), Pair("SYNCOPATE_SEED", "42"),
                                       Pair("SYNCOPATE_COMPRESS", "none")}));
  EXPECT_THAT(variables, Not(Contains(Key("SYNCOPATE_SERVERS"))));
  EXPECT_EQ(variables.at("SYNCOPATE_BUCKET_BYTES"), "1048576") << "as the run's record says";
  request.bucket_bytes.reset();
  EXPECT_THAT(given(request), Not(Contains(Key("SYNCOPATE_BUCKET_BYTES")))) << "auto: as it pleases the program";
}

TEST(CommandEnvironment, AsksForServersWithWhatTheyAreMadeOf) {
  RunRequest request = of_two(Mode::kPs);
  request.servers = 3;
  request.consistency = *ps::Consistency::parse("bounded:4");
  request.transport = TransportKind::kSockets;
  request.chunk_bytes = 65536;
  request.compress = *parse_codec("int8");
  EXPECT_THAT(given(request),
              IsSupersetOf({Pair("SYNCOPATE_MODE", "ps"), Pair("SYNCOPATE_WIRE", "sockets"),
                            Pair("SYNCOPATE_CONSISTENCY", "bounded:4"), Pair("SYNCOPATE_SERVERS", "3"),
                            Pair("SYNCOPATE_BUCKET_BYTES", "65536"), Pair("SYNCOPATE_COMPRESS", "int8")}));
}

TEST(CommandEnvironment, SaysWhatAllRowsOfAComparisonAsk) {
  RunRequest request = of_two(Mode::kAllreduce);
  EXPECT_THAT(given(request), Not(Contains(Key("SYNCOPATE_COMPARED"))));
  request.compress = *parse_codec("int8");
  ResolvedRun run = resolved(request);
  EXPECT_EQ(asked_of_program(run),
            "SYNCOPATE_MODE=allreduce SYNCOPATE_WIRE=shm SYNCOPATE_COMPRESS=int8 SYNCOPATE_BUCKET_BYTES=1048576");
  run.compared = "SYNCOPATE_MODE=ps";
  EXPECT_THAT(command_environment(run, 0), Contains(Pair("SYNCOPATE_COMPARED", "SYNCOPATE_MODE=ps")));
}

TEST(CommandEnvironment, AsksForSocketsThatBehaveLikeALink) {
  RunRequest request = of_two(Mode::kAllreduce);
  request.shape = *LinkShape::parse("100mbit+1ms");
  EXPECT_THAT(given(request),
              IsSupersetOf({Pair("SYNCOPATE_WIRE", "sockets"), Pair("SYNCOPATE_SHAPE", "100mbit+1ms")}));
}

TEST(CommandEnvironment, CountsTheWorkersOfEachHostAndAsksForSockets) {
  RunRequest request = of_two(Mode::kAllreduce);
  request.workers = 5;
  request.hosts = {{.name = "node1", .slots = 2}, {.name = "localhost", .slots = 4}};
  EXPECT_THAT(given(request, 1), IsSupersetOf({Pair("RANK", "1"), Pair("LOCAL_RANK", "1"), Pair("WORLD_SIZE", "5"),
                                               Pair("LOCAL_WORLD_SIZE", "2"), Pair("SYNCOPATE_WIRE", "sockets")}));
  EXPECT_THAT(given(request, 4),
              IsSupersetOf({Pair("RANK", "4"), Pair("LOCAL_RANK", "2"), Pair("LOCAL_WORLD_SIZE", "3")}));
  EXPECT_THAT(given(request, 4), Not(Contains(Key("MASTER_ADDR")))) << "which is known once rank 0's host is asked";
}

TEST(CommandEnvironment, AsksForSharedMemoryWhereAllWorkersAreOnOneOtherHost) {
  RunRequest request = of_two(Mode::kAllreduce);
  request.hosts = {{.name = "node1", .slots = 2}, {.name = "node2", .slots = 2}};
  EXPECT_THAT(given(request), IsSupersetOf({Pair("LOCAL_RANK", "1"), Pair("SYNCOPATE_WIRE", "shm")}));
  request.workers = 3;
  EXPECT_THAT(given(request), Contains(Pair("SYNCOPATE_WIRE", "sockets")));
}

TEST(CommandEnvironment, LetsAWorkerAloneSumWithNobody) {
  RunRequest request = of_two(Mode::kLocal);
  request.workers = 1;
  EXPECT_THAT(given(request, 0), IsSupersetOf({Pair("SYNCOPATE_MODE", "allreduce"), Pair("WORLD_SIZE", "1")}));
}

}  // namespace
}  // namespace syncopate::experiments
