#include "common/transport/members_transport.h"

#include <gtest/gtest.h>

#include "common/transport/inproc_transport.h"

namespace syncopate {
namespace {

TEST(MembersTransport, KeepsTheNumbersOfTheWholeGroup) {
  const SteadyClock clock;
  const TimePoint deadline = clock.now() + std::chrono::seconds(10);
  InProcHub hub(2);
  MembersTransport first(hub.endpoint(0), {0, 3}, 5), second(hub.endpoint(1), {0, 3}, 5);
  EXPECT_EQ(first.rank(), 0);
  EXPECT_EQ(second.rank(), 3);
  EXPECT_EQ(second.size(), 5);
  PendingSends pending;
  ASSERT_TRUE(second.send(0, "hello", {}, &pending, deadline).ok());
  const Result<Message> message = first.receive(deadline);
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->from(), 3);
  EXPECT_EQ(message->header(), "hello");
}

TEST(MembersTransport, TellsWhoIsNotThere) {
  InProcHub hub(1);
  MembersTransport transport(hub.endpoint(0), {2}, 4);
  PendingSends pending;
  const Status status = transport.send(1, "hello", {}, &pending, SteadyClock().now());
  EXPECT_EQ(status.code(), Code::kPeerLost);
  EXPECT_EQ(status.message(), "member 1 is not there");
}

}  // namespace
}  // namespace syncopate
