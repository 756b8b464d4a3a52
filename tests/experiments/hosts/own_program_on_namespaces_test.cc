// run_experiment --cluster=namespaces -- PROGRAM: a program of the person's own on hosts that the run makes itself.
// python/tests/test_namespaces.py trains there.
#include <poll.h>

#include <csignal>
#include <fstream>
#include <map>

#include "tests/faults/failing_run.h"
#include "tests/support/network_hosts_fixture.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::lines_of;
using testing_support::text_of;

const std::string kProgram = SYNCOPATE_OWN_PROGRAM;

class OwnProgramOnNamespaces : public testing_support::NetworkNamespacesTest {
 protected:
  // The variables of a rank, as it had them.
  static std::map<std::string, std::string> variables_of(const Program& program, int rank) {
    std::map<std::string, std::string> variables;
    for (const std::string& line : lines_of(text_of(program.output() / fmt::format("logs/worker-{}.log", rank)))) {
      const std::size_t equals = line.find('=');
      if (equals != line.npos) variables[line.substr(0, equals)] = line.substr(equals + 1);
    }
    return variables;
  }

  testing_support::TemporaryFolder folder_;
};

TEST_F(OwnProgramOnNamespaces, HasHostsLinksAndTheSecretOfTheRun) {
  Program program({"--mode=ps", "--servers=3", "--cluster=namespaces:2x2,link:100mbit+2ms",
                   "--command=sh -c 'env; echo LENGTH=$(wc -c < $SYNCOPATE_SECRET_FILE); exec " + kProgram + " 20'"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.err, IsEmpty());
  EXPECT_THAT(end.out, AllOf(HasSubstr("4 workers, 3 servers on 2 namespaces, tcp"), HasSubstr("100 Mb/s each way")));
  EXPECT_EQ(program.summary()["total_steps"], 80);
  for (int rank = 0; rank < 4; ++rank) {
    auto variables = variables_of(program, rank);
    EXPECT_EQ(variables["MASTER_ADDR"], "10.77.0.2");
    EXPECT_EQ(variables["SYNCOPATE_ADDRESS"], rank < 2 ? "10.77.0.2" : "10.77.0.3");
    EXPECT_EQ(variables["LOCAL_RANK"], fmt::to_string(rank % 2));
    EXPECT_EQ(variables["SYNCOPATE_SHAPE"], "1000gbit+2ms") << "the kernel limits the rate";
    EXPECT_EQ(variables["LENGTH"], "64");
  }
}

TEST_F(OwnProgramOnNamespaces, HasAHostForEachWorkerIfNoneAreCounted) {
  Program program({"--mode=ps", "--servers=2", "--workers=3", "--cluster=namespaces",
                   "--command=sh -c 'env; exec " + kProgram + " 5'"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("3 workers, 2 servers on 3 namespaces"));
  EXPECT_EQ(variables_of(program, 2)["SYNCOPATE_ADDRESS"], "10.77.0.4");
  EXPECT_EQ(variables_of(program, 2).count("SYNCOPATE_SHAPE"), 0u);
}

TEST_F(OwnProgramOnNamespaces, IsComparedAndStudiedOverLinks) {
  for (const Flags& command : {Flags{"compare", "--modes=allreduce,ps:async", "--cluster=namespaces:2,link:1gbit"},
                               Flags{"study", "--modes=allreduce,ps:async", "--cluster=namespaces",
                                     "--vary=shape=50mbit,1gbit", "--vary=workers=1,2"}}) {
    Program program(command + Flags{"--repeat=1", "--warmup-steps=2", "--command=" + kProgram + " 20"});
    const ProgramEnd end = program.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err;
    EXPECT_THAT(end.out, AllOf(HasSubstr("allreduce"), HasSubstr("ps:async"), HasSubstr("network namespaces")));
  }
}

// A link carries what the program sends, also where that knows nothing of Syncopate: 2 MB over 20 Mb/s take 0.8 s.
TEST_F(OwnProgramOnNamespaces, SendsOverLinksThatAreAsThinAsAsked) {
  const std::string python = R"(import os, socket, sys, time
rank, at = int(os.environ["RANK"]), (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
begin = time.monotonic()
if rank == 0:
    peer = socket.create_server(at).accept()[0]
    count = 0
    begin = time.monotonic()
    while data := peer.recv(1 << 16): count += len(data)
    print("took", time.monotonic() - begin, count, flush=True)
else:
    while True:
        try:
            peer = socket.create_connection(at)
            break
        except OSError: time.sleep(0.01)
    peer.sendall(b"x" * 2000000)
os.execv(sys.argv[1], [sys.argv[1], "5"]))";
  const std::string file = folder_.path() / "program.py";
  std::ofstream(file) << python;
  Program program(
      {"--mode=allreduce", "--cluster=namespaces:2,link:20mbit", "--command=python3 " + file + " " + kProgram});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err;
  const std::size_t took = end.out.find("took ");
  ASSERT_NE(took, std::string::npos) << end.out;
  EXPECT_GT(std::stod(end.out.substr(took + 5)), 0.7);
}

TEST_F(OwnProgramOnNamespaces, IsNamedWithItsHostAndNothingIsLeft) {
  for (const int killed : {0, 1}) {
    Program program({"--mode=allreduce", "--cluster=namespaces:2", "--timeout=1",
                     fmt::format("--command=sh -c 'trap \"\" TERM; sleep 3600 & echo $$ > {}/worker-$RANK; {} 5; "
                                 "while :; do sleep 0.05; done'",
                                 folder_.path().string(), kProgram)});
    ASSERT_TRUE(program.wait_until_training(2));
    const pid_t victim = std::stoi("0" + text_of(folder_.path() / "worker-1"));
    ASSERT_GT(victim, 1);
    if (killed == 1) {
      kill(victim, SIGKILL);
      const ProgramEnd end = program.wait();
      EXPECT_EQ(end.exit_code, 5);
      EXPECT_THAT(end.err, HasSubstr("worker 1 (host host-1) was killed by signal 9 (Killed)"));
    } else {
      kill(victim, SIGSTOP);  // it cannot end itself
      program.signal(SIGKILL);
      EXPECT_EQ(program.wait().exit_code, 128 + SIGKILL);
    }
    EXPECT_TRUE(program.all_gone_within(kDeadline));
    const TimePoint deadline = SteadyClock().now() + kDeadline;
    while (kill(victim, 0) == 0 && SteadyClock().now() < deadline) poll(nullptr, 0, 20);
    EXPECT_NE(kill(victim, 0), 0);
  }
}

TEST_F(OwnProgramOnNamespaces, MustBeThere) {
  Program program({"--mode=allreduce", "--cluster=namespaces:2", "--command=no-such-program x"});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err, ContainsRegex("worker [01] \\(host host-[01]\\) .*cannot start no-such-program"));
}

}  // namespace
}  // namespace syncopate::experiments
