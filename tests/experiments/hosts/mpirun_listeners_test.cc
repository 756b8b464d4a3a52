// What listens under --launcher=mpirun on one host that has a network: nothing that another host can reach.
#include <fstream>
#include <sstream>

#include "common/os/socket_address.h"
#include "tests/experiments/hosts/several_hosts.h"
#include "tests/support/slowness.h"

namespace syncopate::experiments {
namespace {

using testing::IsEmpty;
using testing::Not;

// Returns the addresses at which a process listens in the network of process `pid`, as /proc/net/tcp and tcp6 have
// them: in words of the processor's order.
std::vector<std::string> listeners_beside(pid_t pid) {
  std::vector<std::string> found;
  for (const char* protocol : {"tcp", "tcp6"}) {
    std::ifstream table(fmt::format("/proc/{}/net/{}", pid, protocol));
    std::string line;
    for (std::getline(table, line); std::getline(table, line);) {
      std::istringstream columns(line);
      std::string number, local, remote, state;
      columns >> number >> local >> remote >> state;
      if (state == "0A") found.push_back(local.substr(0, local.find(':')));
    }
  }
  return found;
}

TEST_F(SeveralHosts, UnderMpirunOnOneHostNothingListensBeyondIt) {
  if (testing_support::kSanitized) GTEST_SKIP() << testing_support::kWhyNoMpi;
  for (const char* collective : {"ring", "mpi"}) {
    Program program(
        training({"--mode=allreduce", "--workers=2", "--launcher=mpirun", fmt::format("--collective={}", collective)}),
        hosts_->on("home"));
    ASSERT_TRUE(program.wait_until_training(2)) << program.errors();
    const std::vector<std::string> listeners = listeners_beside(program.pid());
    EXPECT_THAT(listeners, Not(IsEmpty())) << "of mpirun itself";
    for (const std::string& address : listeners) {
      EXPECT_THAT(address, testing::AnyOf("0100007F", "00000000000000000000000001000000")) << collective;
    }
    program.signal(SIGINT);
    EXPECT_EQ(program.wait().exit_code, 130);
  }
}

// Where its ranks are told to use it, TCP works over the loopback interface.
TEST_F(SeveralHosts, UnderMpirunOnOneHostOpenMpisTcpStillWorks) {
  if (testing_support::kSanitized) GTEST_SKIP() << testing_support::kWhyNoMpi;
  Program program(training({"--mode=allreduce", "--workers=2", "--launcher=mpirun", "--collective=mpi",
                            "--mpi-options=--mca btl tcp,self"},
                           "--steps=20"),
                  hosts_->on("home"));
  EXPECT_EQ(program.wait().exit_code, 0) << program.errors()
                                         << testing_support::text_of(program.output() / "logs/mpirun.log");
}

}  // namespace
}  // namespace syncopate::experiments
