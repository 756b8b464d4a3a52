#include "common/launch/node_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace syncopate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(NodeList, HasTheNamesThatAListOfSlurmsMeans) {
  EXPECT_THAT(*parse_node_list("node1"), ElementsAre("node1"));
  EXPECT_THAT(*parse_node_list("node[1-3,07-08],login"),
              ElementsAre("node1", "node2", "node3", "node07", "node08", "login"));
  EXPECT_THAT(*parse_node_list("rack[1,3]-gpu,x-9"), ElementsAre("rack1-gpu", "rack3-gpu", "x-9"));
  EXPECT_THAT(*parse_node_list("n[098-101]"), ElementsAre("n098", "n099", "n100", "n101"));
}

TEST(NodeList, IsRefusedIfItIsNone) {
  for (const char* wrong : {"", ",", "node[", "node[]", "node[3-1]", "node[a]", "node]1[", "n[1-1000000000]"}) {
    EXPECT_THAT(parse_node_list(wrong).status().message(), HasSubstr("SLURM_JOB_NODELIST=")) << wrong;
  }
}

}  // namespace
}  // namespace syncopate
