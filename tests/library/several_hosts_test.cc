// The library's ranks on two hosts, which are network namespaces of this machine.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/support/network_hosts_fixture.h"

namespace syncopate::library {
namespace {

using testing_support::NetworkHosts;
using testing_support::TemporaryFolder;

constexpr std::size_t kFloats = 1 << 20;
constexpr int kTimes = 5;

struct RankEnd {
  int code = -1;
  long long differ = -1;
  long long sent = -1;
};

class LibraryOnSeveralHosts : public testing_support::NetworkHostsTest {
 protected:
  // One process a rank, on host 0 (a) or 1 (b); returns how each ended, by rank.
  std::vector<RankEnd> run(const std::vector<int>& host_of) {
    const TemporaryFolder folder;
    const std::filesystem::path secret = folder.path() / "secret";
    std::ofstream(secret) << std::string(32, 's');
    std::filesystem::permissions(secret, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    std::vector<FILE*> pipes;
    for (std::size_t rank = 0; rank < host_of.size(); ++rank) {
      const std::string command = fmt::format(
          "{} /usr/bin/env RANK={} WORLD_SIZE={} MASTER_ADDR={} MASTER_PORT=29517 SYNCOPATE_SECRET_FILE={} {} {} {} {}",
          fmt::join(hosts_->on(host_of[rank] == 0 ? "a" : "b"), " "), rank, host_of.size(),
          NetworkHosts::address_of(host_of[0] == 0 ? "a" : "b"), secret.string(), SYNCOPATE_RANK_ON_HOST, kFloats,
          kTimes, fmt::join(host_of, " "));
      pipes.push_back(popen(command.c_str(), "r"));
    }
    std::vector<RankEnd> ends(host_of.size());
    for (std::size_t rank = 0; rank < host_of.size(); ++rank) {
      EXPECT_EQ(std::fscanf(pipes[rank], "%lld %lld", &ends[rank].differ, &ends[rank].sent), 2) << "rank " << rank;
      ends[rank].code = pclose(pipes[rank]);
    }
    return ends;
  }
};

// 2(h-1)/h of the buffer is what the link of each of two hosts must carry: all of it. A ring of four ranks sends one
// and a half.
TEST_F(LibraryOnSeveralHosts, SumsInEachHostFirstAndSendsTheOtherNoMoreThanItMustHave) {
  for (const std::vector<int>& host_of : {std::vector<int>{0, 0, 1, 1}, {1, 0, 0, 1}, {0, 0, 0, 1}}) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(host_of, " ")));
    for (const RankEnd& end : run(host_of)) {
      EXPECT_EQ(end.code, 0);
      EXPECT_EQ(end.differ, 0) << "ranks of a host in order, then the hosts";
      const double buffers = static_cast<double>(end.sent) / (kTimes * kFloats * sizeof(float));
      EXPECT_GT(buffers, 0.99);
      EXPECT_LT(buffers, 1.3) << "with frames, what encryption adds, and acknowledgements";
    }
  }
}

}  // namespace
}  // namespace syncopate::library
