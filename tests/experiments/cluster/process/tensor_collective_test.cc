#include "experiments/cluster/process/tensor_collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "allreduce/collective/schedule_collective.h"
#include "tests/support/cluster.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_support::connect_group;
using testing_support::run_ranks;

const std::vector<int> kWorkers{3, 5, 8};

std::unique_ptr<TensorCollective> group_over(std::unique_ptr<Transport> transport, const Clock& clock,
                                             Duration timeout = std::chrono::seconds(60)) {
  HostCollective connected;
  connected.transport = std::move(transport);
  connected.collective = allreduce::make_schedule_collective(*connected.transport, {.called = kWorkers});
  return std::move(*TensorCollective::make(std::move(connected), 100, timeout, clock));
}

TEST(TensorCollective, SumsAndCopiesWithTheSameBitsOverEveryWire) {
  for (const std::string& wire : testing_support::all_wires()) {
    SCOPED_TRACE(wire);
    const SteadyClock clock;
    auto transports = connect_group(wire, 3);
    std::vector<std::vector<float>> sums(3), copies(3);
    std::vector<std::unique_ptr<TensorCollective>> groups(3);  // each lives until all have received
    run_ranks(3, [&](int rank) {
      const auto at = static_cast<std::size_t>(rank);
      const auto& group = groups[at] = group_over(std::move(transports[at]), clock);
      EXPECT_EQ(group->rank(), rank);
      EXPECT_EQ(group->size(), 3);
      // Several sizes, of which none but the first fills the memory.
      for (const std::size_t size : {100, 1, 48}) {
        sums[at].assign(size, 0.1f * static_cast<float>(rank + 1));
        EXPECT_EQ(group->sum(sums[at]).message(), "");
        copies[at].assign(size, static_cast<float>(rank));
        EXPECT_EQ(group->broadcast(copies[at], 1).message(), "");
      }
      EXPECT_GT(group->counters().payload_bytes_out, 0);
    });
    for (std::size_t rank = 0; rank < 3; ++rank) {
      EXPECT_THAT(sums[rank], testing::ElementsAreArray(sums[0]));
      EXPECT_THAT(copies[rank], testing::Each(1.0f));
    }
    EXPECT_THAT(sums[0], testing::Each(testing::FloatNear(0.6f, 1e-6f)));
  }
}

TEST(TensorCollective, SaysWhichWorkerItWaitedFor) {
  const SteadyClock clock;
  auto transports = connect_group("inproc", 3);
  const auto group = group_over(std::move(transports[1]), clock, std::chrono::milliseconds(20));
  std::vector<float> values(48);
  const Status status = group->sum(values);
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("waiting for worker 3"), HasSubstr("waiting for rank 3")));
}

TEST(TensorCollective, EndsWhenItIsInterrupted) {
  const SteadyClock clock;
  auto transports = connect_group("sockets", 3);
  const auto group = group_over(std::move(transports[0]), clock);
  group->interrupt();
  std::vector<float> values(48);
  EXPECT_EQ(group->sum(values).code(), Code::kCancelled);
}

}  // namespace
}  // namespace syncopate::experiments
