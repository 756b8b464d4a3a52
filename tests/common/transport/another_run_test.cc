// Endpoints that find each other and have the same secret, though they say that they are of different runs.
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/transport/inproc_transport.h"
#include "common/transport/make_transport.h"
#include "tests/support/cluster.h"
#include "tests/support/test_keys.h"

namespace syncopate {
namespace {

using testing_support::run_ranks;
using testing_support::soon;

class AnotherRun : public testing::TestWithParam<TransportKind> {
 protected:
  // Connects ranks 0, 1 and 2; rank 1 is of another run.
  AnotherRun() {
    InProcRendezvous rendezvous;
    run_ranks(3, [&](int rank) {
      const std::string run = "run-" + std::to_string(getpid());
      const TransportOptions options{.run_id = rank == 1 ? run + "-other" : run,
                                     .group = "test",
                                     .rank = rank,
                                     .size = 3,
                                     .keys = testing_support::test_keys()};
      Result<std::unique_ptr<Transport>> endpoint = make_transport(GetParam(), options, rendezvous, soon());
      EXPECT_TRUE(endpoint.ok()) << endpoint.status().message();
      if (endpoint.ok()) group_[rank] = std::move(*endpoint);
    });
  }

  std::unique_ptr<Transport> group_[3];
};

INSTANTIATE_TEST_SUITE_P(Over, AnotherRun, testing::Values(TransportKind::kIpc, TransportKind::kTcp),
                         [](const auto& kind) { return kind.param == TransportKind::kIpc ? "ipc" : "tcp"; });

TEST_P(AnotherRun, IsNotListenedToButCounted) {
  ASSERT_TRUE(group_[1]->send(0, "of another run", {}, nullptr, soon()).ok());
  const TimePoint deadline = soon();
  while (group_[0]->counters().dropped == 0 && SteadyClock().now() < deadline) {
    const Result<Message> message = group_[0]->receive(SteadyClock().now() + std::chrono::milliseconds(10));
    ASSERT_EQ(message.status().code(), Code::kDeadlineExceeded);
  }
  EXPECT_EQ(group_[0]->counters().dropped, 1);
  ASSERT_TRUE(group_[2]->send(0, "of this run", {}, nullptr, soon()).ok());
  const Result<Message> message = group_[0]->receive(soon());
  ASSERT_TRUE(message.ok()) << message.status().message();
  EXPECT_EQ(message->header(), "of this run");
  EXPECT_EQ(group_[0]->counters().dropped, 1);
}

}  // namespace
}  // namespace syncopate
