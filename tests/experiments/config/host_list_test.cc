#include "experiments/config/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate::experiments {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string host_refusal(const std::string& text) { return parse_hosts(text).status().message(); }

TEST(HostList, NumbersTheHostsOfASimulatedCluster) {
  const Result<std::vector<HostSlots>> hosts = parse_hosts("16x4");
  ASSERT_TRUE(hosts.ok());
  EXPECT_EQ(hosts->size(), 16u);
  EXPECT_EQ(total_slots(*hosts), 64);
  EXPECT_TRUE(are_numbered(*hosts));
  EXPECT_EQ(to_text(*hosts), "16x4");
  EXPECT_FALSE(are_numbered(*parse_hosts("host-0:2,b:2")));
  for (const char* wrong : {"0x4", "4x", "4x0", "1025x4", "4x1025"}) {
    EXPECT_THAT(parse_hosts(wrong).status().message(), testing::HasSubstr("as in 16x4")) << wrong;
  }
  EXPECT_EQ(parse_hosts("x4")->front().name, "x4");
}

TEST(HostList, HasASlotUnlessMoreAreGiven) {
  EXPECT_THAT(*parse_hosts("node1:2,me@10.0.0.7,localhost:3"),
              ElementsAre(HostSlots{"node1", 2}, HostSlots{"me@10.0.0.7", 1}, HostSlots{"localhost", 3}));
}

TEST(HostList, HasIpv6AddressesInBrackets) {
  const Result<std::vector<HostSlots>> hosts = parse_hosts("[fd00::7]:2,me@[fd00::8],node1:3");
  ASSERT_TRUE(hosts.ok()) << hosts.status().message();
  EXPECT_THAT(*hosts, ElementsAre(HostSlots{"fd00::7", 2}, HostSlots{"me@fd00::8", 1}, HostSlots{"node1", 3}));
  EXPECT_EQ(to_text(*hosts), "[fd00::7]:2,me@[fd00::8]:1,node1:3");
  EXPECT_EQ(*parse_hosts(to_text(*hosts)), *hosts);
  EXPECT_EQ(*parse_host_file("[fd00::7] slots=2\n[fd00::8]\n"), *parse_hosts("[fd00::7]:2,[fd00::8]"));
  EXPECT_THAT(host_refusal("fd00::7"), HasSubstr("write 'fd00::7' as [fd00::7]"));
  for (const char* wrong : {"[fd00::7", "[node1]", "[fd00::7]2", "[fd00::7]:", "[]:2", "[fd00::7]:x", "-[fd00::7]",
                            "fd00::7%eth0", "[fd00::7%eth0]", "[-fd00::7]"}) {
    EXPECT_FALSE(parse_hosts(wrong).ok()) << wrong;
  }
}

TEST(HostList, ComesBackFromItsText) {
  EXPECT_EQ(to_text(*parse_hosts("a,b:2")), "a:1,b:2");
  EXPECT_EQ(*parse_hosts(to_text(*parse_hosts("a,b:2"))), *parse_hosts("a,b:2"));
}

TEST(HostList, TakesThisHostByItsUsualName) {
  EXPECT_FALSE((HostSlots{"localhost", 1}).remote());
  EXPECT_TRUE((HostSlots{"node1", 1}).remote());
}

TEST(HostList, SaysWhatIsWrong) {
  EXPECT_EQ(host_refusal(""), "there must be one at least");
  EXPECT_EQ(host_refusal("a,,b"), "'' must be a name or an address of a host, of IPv6 in brackets, as in [fd00::7]");
  EXPECT_EQ(host_refusal("a:"), "'a:' lacks its number of slots, as in HOST:2");
  EXPECT_EQ(host_refusal("a:0,b:0"), "one at least must have a slot for a worker");
  EXPECT_EQ(host_refusal("a:-1"), "slots of a must be 0 to 1024, not '-1'");
  EXPECT_EQ(host_refusal("a:two"), "slots of a must be 0 to 1024, not 'two'");
  EXPECT_EQ(host_refusal("a:1,a:2"), "a stands there twice; give it once, with all its slots");
}

// A name becomes a word on the remote shell's command line.
TEST(HostList, TakesNoNameThatTheRemoteShellCouldReadAsSomethingElse) {
  for (const char* name : {"-oProxyCommand=reboot", "a b", "a;reboot", "$(reboot)"}) {
    EXPECT_THAT(host_refusal(name), HasSubstr("must be a name")) << name;
  }
}

TEST(HostList, IsReadFromAFileAsMpirunHasIt) {
  EXPECT_THAT(*parse_host_file("# ours\nnode1 slots=2\n\n  node2:3  # the big one\nnode3\n"),
              ElementsAre(HostSlots{"node1", 2}, HostSlots{"node2", 3}, HostSlots{"node3", 1}));
  EXPECT_EQ(parse_host_file("node1\nnode2 cores=2\n").status().message(),
            "line 2: must be HOST, HOST:SLOTS or HOST slots=SLOTS");
  EXPECT_EQ(parse_host_file("# none\n").status().message(), "there must be one at least");
}

TEST(HostList, IsReadFromFilesOfOtherPrograms) {
  // DeepSpeed's and Horovod's.
  EXPECT_THAT(*parse_host_file("worker-1 slots=4\nworker-2 slots=4\n"),
              ElementsAre(HostSlots{"worker-1", 4}, HostSlots{"worker-2", 4}));
  // Open MPI's.
  EXPECT_THAT(*parse_host_file("# nodes of the rack\nfoo.example.com\nbar.example.com slots=2\n"
                               "yow.example.com slots=4 max-slots=4\r\nzip max_slots=8 slots=2\n"),
              ElementsAre(HostSlots{"foo.example.com", 1}, HostSlots{"bar.example.com", 2},
                          HostSlots{"yow.example.com", 4}, HostSlots{"zip", 2}));
  // MPICH's, and what mpirun of Horovod takes behind -H, a line each.
  EXPECT_THAT(*parse_host_file("host1:2\nhost2:4"), ElementsAre(HostSlots{"host1", 2}, HostSlots{"host2", 4}));
  for (const char* wrong : {"a slots=", "a slots=1 slots=2", "a:1 b:1", "a:1,b:1 slots=2", "a:2 slots=2"}) {
    EXPECT_THAT(parse_host_file(std::string("b\n\n") + wrong).status().message(), testing::StartsWith("line 3: "))
        << wrong;
  }
}

TEST(HostList, IsFilledInOrder) {
  EXPECT_THAT(hosts_of_workers(*parse_hosts("a:2,b:1,c:2"), 4), ElementsAre(0, 0, 1, 2));
  EXPECT_EQ(total_slots(*parse_hosts("a:2,b:1,c:2")), 5);
}

}  // namespace
}  // namespace syncopate::experiments
