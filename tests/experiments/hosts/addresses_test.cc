// Which addresses hosts of a run have for each other: of IPv6, by names, and where names lead astray.
#include <tuple>
#include <utility>

#include "tests/experiments/hosts/several_hosts.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

const Flags kSmall{"--model=mlp:784-32-10", "--batch-size=16", "--train-samples=4096", "--test-samples=512",
                   "--epochs=1"};

class Addresses : public SeveralHosts {
 protected:
  void SetUp() override {
    SeveralHosts::SetUp();
    if (hosts_ && !hosts_->has_ipv6()) GTEST_SKIP() << "the kernel has no IPv6";
  }
  // Starts run_experiment at home, where names are as in /etc/hosts with this text.
  Program& start_with_names(const std::string& names, const std::string& hosts, const Flags& mode) {
    return program_.emplace(kSmall + mode + Flags{"--hosts=" + hosts, hosts_->remote_shell()},
                            hosts_->knowing_names(names));
  }
  std::string log_of_worker() const { return testing_support::text_of(program_->output() / "logs/worker-0.log"); }
  std::string record() const { return testing_support::text_of(program_->output() / "config.toml"); }
};

TEST_F(Addresses, OfIpv6CarryEachTransport) {
  for (const Flags& mode : {Flags{"--mode=ps", "--servers=2"}, Flags{"--mode=allreduce", "--collective=ring"}}) {
    Program& program = start_with_names("", "[fd77::2]:1,[fd77::3]:1", mode);
    const ProgramEnd end = program.wait();
    ASSERT_EQ(end.exit_code, 0) << end.err << log_of_worker();
    EXPECT_THAT(end.err, IsEmpty());
    EXPECT_THAT(end.out, HasSubstr("on 2 hosts"));
    EXPECT_THAT(record(), HasSubstr("listen-address = \"fd77::1\""));
    EXPECT_THAT(record(), HasSubstr("hosts = \"[fd77::2]:1,[fd77::3]:1\""));
  }
}

TEST_F(Addresses, AreOfIpv6WhereANameHasNoOthers) {
  Program& program = start_with_names("fd77::2 a\nfd77::3 b\n", "a:1,b:1", {"--mode=ps"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err << log_of_worker();
  EXPECT_THAT(record(), HasSubstr("listen-address = \"fd77::1\""));
}

TEST_F(Addresses, AreOfIpv4WhereANameHasBoth) {
  Program& program = start_with_names("fd77::2 a\n10.77.0.2 a\n", "a:2", {"--mode=allreduce"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err << log_of_worker();
  EXPECT_THAT(record(), HasSubstr("listen-address = \"10.77.0.1\""));
}

// As Debian writes it for a host's own name.
TEST_F(Addresses, ThatLeadBackToThisHostAreNotGivenToOthers) {
  Program& program = start_with_names("127.0.1.1 home\n10.77.0.2 a\n", "home:1,a:1", {"--mode=allreduce"});
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err << log_of_worker();
  EXPECT_THAT(record(), HasSubstr("listen-address = \"10.77.0.1\""));
}

TEST_F(Addresses, ThatLeadAstrayAreSaidBeforeAnythingIsLaunched) {
  Program& program = start_with_names("127.0.1.1 a\n", "a:1", {"--mode=allreduce"});
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.exit_code, 2);
  EXPECT_THAT(end.err,
              MatchesRegex("run_experiment: --hosts: the name a leads back to this host \\(127[.0-9]+\\), and "
                           "the remote shell to a; say with --listen-address where the hosts reach this one\n"));
  EXPECT_FALSE(std::filesystem::exists(program.output()));
}

TEST_F(Addresses, AreThoseOfTheNetworkThatTheListenAddressIsIn) {
  Program& program = start_with_names("10.77.0.2 a\n10.77.0.3 b\n", "a:1,b:1",
                                      {"--mode=allreduce", "--collective=ring", "--listen-address=fd77::1"});
  ASSERT_TRUE(program.wait_until_training(1));
  const ProgramEnd end = program.wait();
  ASSERT_EQ(end.exit_code, 0) << end.err << log_of_worker();
  EXPECT_THAT(record(), HasSubstr("listen-address = \"fd77::1\""));
}

// Hosts with two networks each, over one of which they are named.
class TwoNetworks : public SeveralHosts, public testing::WithParamInterface<std::tuple<const char*, Flags>> {
 protected:
  using Network = testing_support::NetworkHosts::Network;

  void SetUp() override {
    if (std::string(std::get<0>(GetParam())) == "OpenMpi" && testing_support::kSanitized) {
      GTEST_SKIP() << testing_support::kWhyNoMpi;
    }
    SeveralHosts::SetUp();
    if (hosts_) hosts_->add_second_network();
  }
  // The megabytes that host a sends over each network.
  std::pair<double, double> sent_with(const Flags& more) {
    const auto now = [&](Network network) { return static_cast<double>(hosts_->bytes_sent("a", network)) / 1e6; };
    const std::pair before{now(Network::kFirst), now(Network::kSecond)};
    const ProgramEnd end = start("a:1,b:1", kSmall + std::get<1>(GetParam()) + more).wait();
    EXPECT_EQ(end.exit_code, 0) << end.err;
    return {now(Network::kFirst) - before.first, now(Network::kSecond) - before.second};
  }
};

// An epoch has 128 steps a worker, of 102 kB each way.
TEST_P(TwoNetworks, CarryARunOverTheOneThatTheListenAddressIsIn) {
  const auto [first, second] = sent_with({});
  EXPECT_GT(first, 10);
  EXPECT_LT(second, 0.1);
  const auto [unused, used] =
      sent_with({"--listen-address=" + testing_support::NetworkHosts::second_address_of("home")});
  EXPECT_GT(used, 10);
  EXPECT_LT(unused, 0.1);
}

INSTANTIATE_TEST_SUITE_P(
    Under, TwoNetworks,
    testing::Values(std::tuple("Ps", Flags{"--mode=ps", "--servers=2"}),
                    std::tuple("Ring", Flags{"--mode=allreduce", "--collective=ring"}),
                    std::tuple("Hierarchical", Flags{"--mode=allreduce", "--collective=hierarchical"}),
                    std::tuple("OpenMpi", Flags{"--mode=allreduce", "--launcher=mpirun", "--collective=mpi"})),
    [](const auto& test) { return std::string(std::get<0>(test.param)); });

}  // namespace
}  // namespace syncopate::experiments
