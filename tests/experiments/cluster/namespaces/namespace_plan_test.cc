#include "experiments/cluster/namespaces/namespace_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "experiments/config/namespace_cluster.h"

namespace syncopate::experiments {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(NamespacePlan, GivesEveryHostAnAddressOfItsOwn) {
  std::set<std::string> addresses{std::string(kSwitchAddress)};
  for (std::size_t host = 0; host < kMostNamespaces; ++host) addresses.insert(address_of_namespace(host));
  EXPECT_EQ(addresses.size(), kMostNamespaces + 1u);
  EXPECT_EQ(names_of_namespaces(2), "10.77.0.2 host-0\n10.77.0.3 host-1\n");
}

TEST(NamespacePlan, PutsHostsOfARackBehindOneLine) {
  const std::string script = fabric_script(5, {.racks = 2});
  EXPECT_THAT(script, HasSubstr("link set to-2 master rack-0\n"));
  EXPECT_THAT(script, HasSubstr("link set to-3 master rack-1\n"));
  EXPECT_THAT(script, Not(HasSubstr("to-5")));
  EXPECT_THAT(rack_devices({.racks = 2}), testing::ElementsAre("up-0", "down-0", "up-1", "down-1"));
  EXPECT_THAT(fabric_script(5, FabricChoice()), IsEmpty());
  EXPECT_THAT(rack_devices(FabricChoice()), IsEmpty());
}

TEST(NamespacePlan, LetsARacksLineCarryAPartOfWhatItsHostsCanSend) {
  EXPECT_EQ(rack_rate(1'000'000'000, 8, {.racks = 2, .oversubscription = 4}), 1'000'000'000);
  EXPECT_EQ(rack_rate(1'000'000'000, 8, {.racks = 4, .oversubscription = 1}), 2'000'000'000);
}

// A bucket of less than a frame passes nothing; one of much more lets bursts through that no link has.
TEST(NamespacePlan, CountsFramesAsEthernetDoesAndLetsFewThroughAtOnce) {
  EXPECT_THAT(limit_words(20'000'000),
              HasSubstr("stab overhead 24 linklayer ethernet tbf rate 20000000bit burst 6152 "));
  EXPECT_THAT(limit_words(10'000'000'000), HasSubstr("burst 125000 "));
}

}  // namespace
}  // namespace syncopate::experiments
