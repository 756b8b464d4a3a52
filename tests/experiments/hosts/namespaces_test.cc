// Runs on hosts that run_experiment makes itself, of network namespaces: what they are, what they can do, and that
// nothing is left of them.
#include <fcntl.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>

#include "common/os/file_descriptor.h"
#include "tests/faults/failing_run.h"
#include "tests/support/network_hosts_fixture.h"
#include "tests/support/ordinary_user.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing_support::run_program;

// A job of a second.
Flags short_job(const Flags& mode) {
  return Flags{"--model=mlp:784-32-10", "--batch-size=16", "--train-samples=4096", "--test-samples=512", "--epochs=1"} +
         mode;
}

std::string namespace_of(const std::string& process) {
  std::error_code gone;
  return fs::read_symlink("/proc/" + process + "/ns/net", gone).string();
}

// Returns the network namespaces that some process is in.
std::set<std::string> all_namespaces() {
  std::set<std::string> all;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") == std::string::npos) all.insert(namespace_of(name));
  }
  return all;
}

// What the machine's own network has: its devices, and the names of namespaces, but for those of other tests, which
// come and go meanwhile.
std::set<std::string> own_network() {
  std::set<std::string> found;
  for (const char* folder : {"/sys/class/net", "/run/netns"}) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder, none)) {
      const std::string name = entry.path().filename();
      if (!name.starts_with("syncopate-") && !name.starts_with("sy-")) found.insert(entry.path());
    }
  }
  return found;
}

class Namespaces : public testing_support::NetworkNamespacesTest {};

TEST_F(Namespaces, AreHostsOfARunWhoseRecordSaysSo) {
  const std::set<std::string> before = own_network();
  Program program(short_job({"--mode=ps", "--servers=2", "--cluster=namespaces:2x2,link:1gbit"}));
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err << testing_support::text_of(program.output() / "logs/worker-0.log");
  EXPECT_THAT(end.err, IsEmpty());
  EXPECT_THAT(end.out, HasSubstr("ps async, 4 workers, 2 servers on 2 namespaces, tcp"));
  EXPECT_THAT(end.out, HasSubstr("hosts 2x2, network namespaces of this machine, which share its cores, 1 Gb/s each "
                                 "way a host, by the kernel, TCP cubic"));
  const nlohmann::json environment =
      nlohmann::json::parse(testing_support::text_of(program.output() / "environment.json"));
  ASSERT_THAT(environment["hosts"], SizeIs(2));
  EXPECT_EQ(environment["hosts"][1]["name"], "host-1");
  EXPECT_EQ(environment["hosts"][1]["own_name"], "host-1");
  EXPECT_EQ(environment["encrypted"], true);
  EXPECT_THAT(
      testing_support::text_of(program.output() / "config.toml"),
      AllOf(HasSubstr("cluster = \"namespaces\""), HasSubstr("hosts = \"2x2\""), HasSubstr("shape = \"1gbit\"")));
  EXPECT_EQ(own_network(), before);
}

TEST_F(Namespaces, TrainTheSameWeightsAsOneHostBitForBit) {
  const Flags mode{"--mode=allreduce", "--collective=direct", "--workers=3"};
  Program alone(short_job(mode)), spread(short_job(mode + Flags{"--cluster=namespaces"}));
  ASSERT_EQ(alone.wait().exit_code, 0);
  const ProgramEnd end = spread.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(spread.weights(), Not(IsEmpty()));
  EXPECT_TRUE(alone.weights() == spread.weights());
}

// 407 kB of gradients and as much of weights a step, over 100 Mb/s: 33 ms each way at least.
TEST_F(Namespaces, HaveLinksThatAreAsThinAsAsked) {
  Program thin({"--mode=ps", "--consistency=sync", "--workers=1", "--model=mlp:784-128-10", "--batch-size=16",
                "--train-samples=1024", "--test-samples=64", "--steps=12", "--warmup-steps=2", "--cluster=namespaces",
                "--shape=100mbit"});
  ASSERT_EQ(thin.wait().exit_code, 0) << thin.errors();
  EXPECT_GT(thin.summary()["step_split_ms"]["step"].get<double>(), 33);
}

TEST_F(Namespaces, AreJoinedInRacksWhoseLinesAreThinner) {
  const auto step = [](const Flags& fabric) {
    Program program(Flags{"--mode=allreduce", "--collective=ring", "--model=mlp:784-64-10", "--batch-size=16",
                          "--train-samples=1024", "--test-samples=64", "--steps=12", "--warmup-steps=2",
                          "--cluster=namespaces:4,link:100mbit"} +
                    fabric);
    EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
    return program.summary()["step_split_ms"]["step"].get<double>();
  };
  // A ring crosses each line, which carries a sixteenth of a link's rate.
  EXPECT_GT(step({"--fabric=racks:2,oversubscription:32"}), 2 * step({}));
}

TEST_F(Namespaces, AreComparedOverWorkersAndLinks) {
  const std::set<std::string> before = own_network();
  Program program(Flags{"compare", "--modes=allreduce:ring,ps:sync", "--cluster=namespaces", "--vary=workers=1,2",
                        "--vary=shape=50mbit,1gbit", "--model=mlp:784-32-10", "--batch-size=16", "--train-samples=1024",
                        "--test-samples=64", "--steps=8", "--warmup-steps=2"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("ps:sync workers=2 shape=50mbit"));
  EXPECT_THAT(end.out, HasSubstr("network namespaces of this machine"));
  EXPECT_EQ(own_network(), before);
}

// The kernel's packets judge the simulated cluster and emulated links (results/reference/namespaces has more cells). A
// busy machine makes steps longer and none shorter, so that the shortest quarter of them is compared.
TEST_F(Namespaces, TakeAsLongAsTheSimulatedClusterAndEmulatedLinksSay) {
  const auto step = [](const Flags& mode, const Flags& cluster) {
    Program program(mode + cluster +
                    Flags{"--workers=4", "--shape=20mbit+50us", "--model=mlp:784-128-10", "--batch-size=16",
                          "--train-samples=2048", "--test-samples=64", "--steps=10", "--warmup-steps=3",
                          "--transport=sockets", "--timeout=60"});
    EXPECT_EQ(program.wait().exit_code, 0) << program.errors();
    std::vector<double> steps;
    for (const std::string& cell : program.column("steps.csv", "total_us")) steps.push_back(std::stod(cell));
    EXPECT_THAT(steps, SizeIs(40));
    std::ranges::sort(steps);
    return steps[steps.size() / 4];
  };
  const Flags ring{"--mode=allreduce", "--collective=ring"}, ps{"--mode=ps", "--servers=2", "--consistency=sync"};
  for (const Flags& mode : {ring, ps}) {
    const double packets = step(mode, {"--cluster=namespaces"});
    const double simulated = step(mode, {"--cluster=simulated", "--compute=2ms"});
    EXPECT_NEAR(simulated / packets, 1, 0.15) << mode.front();
    const double emulated = step(mode, {});
    EXPECT_NEAR(emulated / packets, 1, 0.15) << mode.front();
  }
}

TEST_F(Namespaces, AreShownByADryRunAndNotMade) {
  const ProgramEnd end = run_program({"--mode=ps", "--workers=2", "--cluster=namespaces", "--dry-run"});
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, ContainsRegex("server +0 +host-2 +[^ ]*syncopate --enter-namespace host-2 "));
}

TEST_F(Namespaces, LeaveNothingBehindWhenTheProgramIsKilled) {
  constexpr int kHour = 3600;
  const std::set<std::string> before = own_network();
  Program program(training({"--mode=ps", "--servers=2", "--cluster=namespaces:2"}, kWithoutEnd, kHour));
  ASSERT_TRUE(program.wait_until_training(2));
  const pid_t worker = program.process("worker", 1);
  const std::string of_worker = namespace_of(std::to_string(worker));
  EXPECT_NE(of_worker, namespace_of("self"));
  // Held, its number is not given to a namespace that another test makes meanwhile.
  const FileDescriptor held(open(fmt::format("/proc/{}/ns/net", worker).c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_GE(held.get(), 0);
  kill(worker, SIGSTOP);  // it cannot end itself
  program.signal(SIGKILL);
  EXPECT_EQ(program.wait().exit_code, 128 + SIGKILL);
  EXPECT_TRUE(program.all_gone_within(kDeadline));
  EXPECT_THAT(all_namespaces(), Not(Contains(of_worker)));
  EXPECT_EQ(own_network(), before);
}

// Whatever the machine's own connections do: some ways to control congestion have several flows share a link unevenly.
TEST_F(Namespaces, SpeakCubicWithEachOther) {
  Program program(training({"--mode=allreduce", "--cluster=namespaces:2"}));
  ASSERT_TRUE(program.wait_until_training(2));
  const testing_support::TemporaryFolder folder;
  const std::string list = folder.path() / "sockets";
  const std::string command = fmt::format("nsenter --target={} --net ss --tcp --info --no-header --oneline > {}",
                                          program.process("worker", 0), list);
  EXPECT_EQ(std::system(command.c_str()), 0);
  program.signal(SIGINT);
  EXPECT_EQ(program.wait().exit_code, static_cast<int>(ExitCode::kInterrupted));
  int to_others = 0;
  for (const std::string& line : testing_support::lines_of(testing_support::text_of(list))) {
    std::istringstream words(line);
    std::string state, received, sent, own, peer;
    words >> state >> received >> sent >> own >> peer;
    const auto host_of = [](const std::string& address) { return address.substr(0, address.rfind(':')); };
    if (state != "ESTAB" || host_of(own) == host_of(peer)) continue;
    ++to_others;
    EXPECT_THAT(line, HasSubstr(" cubic "));
  }
  EXPECT_GE(to_others, 1) << testing_support::text_of(list);
}

TEST_F(Namespaces, EndInOrderAtCtrlC) {
  Program program(training({"--mode=allreduce", "--cluster=namespaces:2"}));
  ASSERT_TRUE(program.wait_until_training(2));
  program.signal(SIGINT);
  expect_verdict(program, ExitCode::kInterrupted, "interrupted at step [0-9]+; what was recorded is kept");
}

TEST_F(Namespaces, NameAKilledWorkerAndItsHost) {
  Program program(training({"--mode=allreduce", "--cluster=namespaces:2"}));
  ASSERT_TRUE(program.wait_until_training(2));
  const pid_t victim = program.process("worker", 1);
  kill(victim, SIGKILL);
  expect_verdict(program, ExitCode::kProcessLost,
                 naming_at("worker 1", fmt::format("host-1, pid {}", victim)) + "was killed by signal 9 \\(Killed\\)");
}

TEST_F(Namespaces, CarryOpenMpisOwnPacketsToo) {
  if (testing_support::kSanitized) GTEST_SKIP() << testing_support::kWhyNoMpi;
  Program program(
      short_job({"--mode=allreduce", "--collective=mpi", "--launcher=mpirun", "--cluster=namespaces:2,link:1gbit"}));
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err << testing_support::text_of(program.output() / "logs/mpirun.log");
  EXPECT_THAT(end.out, HasSubstr("2 workers on 2 namespaces, mpi"));
}

TEST(NamespacesOfAnOrdinaryUser, AreRefusedInOneLine) {
  if (const std::string why = testing_support::why_no_ordinary_user(); !why.empty()) GTEST_SKIP() << why;
  const testing_support::TemporaryFolder folder;
  Program program({"--mode=allreduce", "--cluster=namespaces:2", "--output=" + (folder.path() / "run").string()},
                  testing_support::as_ordinary_user(folder.path(), "022"));
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, testing::MatchesRegex("run_experiment: --cluster=namespaces: needs root[^\n]*\n"));
}

}  // namespace
}  // namespace syncopate::experiments
