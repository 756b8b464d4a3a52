#include "tests/support/direct_group.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

#include "allreduce/collective/direct_collective.h"
#include "common/transport/inproc_transport.h"
#include "tests/support/cluster.h"
#include "tests/support/test_keys.h"

namespace syncopate::testing_support {

std::vector<std::unique_ptr<allreduce::Collective>> connect_direct(int size) {
  static std::atomic<int> groups{0};
  const std::string run = fmt::format("direct-{}-{}", getpid(), groups++);
  std::vector<std::unique_ptr<allreduce::Collective>> group(static_cast<std::size_t>(size));
  InProcRendezvous rendezvous;
  run_ranks(size, [&](int rank) {
    auto direct = allreduce::make_direct_collective(
        {.run_id = run, .group = "test", .rank = rank, .size = size, .keys = test_keys()}, rendezvous, soon());
    ASSERT_TRUE(direct.ok()) << direct.status().message();
    group[static_cast<std::size_t>(rank)] = std::move(*direct);
  });
  return group;
}

}  // namespace syncopate::testing_support
