#include "experiments/cluster/process/link_store.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace syncopate::experiments {
namespace {

using allreduce::GroupLinks;
using allreduce::uniform_links;

class LinkStoreTest : public testing::Test {
 protected:
  ~LinkStoreTest() override { std::filesystem::remove_all(directory_); }

  const std::string directory_ = testing::TempDir() + "links-" + std::to_string(getpid());
  const std::string file_ = directory_ + "/deep/links.json";
};

TEST_F(LinkStoreTest, FindsWhatItHasKeptAndKeepsTheRest) {
  const LinkStore store(file_);
  EXPECT_FALSE(store.find("tcp, 2 ranks"));
  ASSERT_TRUE(store.keep("tcp, 2 ranks", {{1e-5, 2e-10, 3e-11}, {7e-5, 1, 2}, {3, 4, 8e-10}}).ok());
  ASSERT_TRUE(store.keep("tcp, 4 ranks", uniform_links({4e-5, 5e-10, 6e-11})).ok());
  const std::optional<GroupLinks> links = LinkStore(file_).find("tcp, 2 ranks");
  ASSERT_TRUE(links);
  EXPECT_EQ(links->inside.latency, 1e-5);
  EXPECT_EQ(links->inside.seconds_per_byte, 2e-10);
  EXPECT_EQ(links->inside.reduce_seconds_per_byte, 3e-11);
  EXPECT_EQ(links->across.latency, 7e-5);
  EXPECT_EQ(links->two_level_inside.reduce_seconds_per_byte, 8e-10);
  EXPECT_FALSE(store.find("tcp, 3 ranks"));
}

TEST_F(LinkStoreTest, KnowsNothingWhereTheFileIsBroken) {
  const LinkStore store(file_);
  for (const char* contents :
       {"", "{", "[1]", R"({"w": 3})", R"({"w": {"latency_seconds": "x"}})",
        R"({"w": {"latency_seconds": 1, "seconds_per_byte": 1, "reduce_seconds_per_byte": 1}})",
        R"({"w": {"inside": {"latency_seconds": -1, "seconds_per_byte": 1, "reduce_seconds_per_byte": 1}}})"}) {
    std::filesystem::create_directories(directory_ + "/deep");
    std::ofstream(file_) << contents;
    EXPECT_FALSE(store.find("w")) << contents;
    ASSERT_TRUE(store.keep("v", uniform_links({1, 1, 1})).ok());
    EXPECT_TRUE(store.find("v")) << contents;
  }
}

TEST_F(LinkStoreTest, SaysWhereItCannotWrite) {
  std::filesystem::create_directories(directory_);
  std::ofstream(directory_ + "/deep") << "a file";
  const Status status = LinkStore(file_).keep("w", uniform_links({1, 1, 1}));
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_NE(status.message().find(file_), std::string::npos) << status.message();
}

TEST_F(LinkStoreTest, KeepsNothingWithoutAPlace) {
  const LinkStore store("");
  EXPECT_TRUE(store.keep("w", uniform_links({1, 1, 1})).ok());
  EXPECT_FALSE(store.find("w"));
}

}  // namespace
}  // namespace syncopate::experiments
