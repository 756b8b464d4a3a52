#include "common/transport/cuttable_transport.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/support/cluster.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using testing_support::connect_group;
using testing_support::soon;

TimePoint in(milliseconds time) { return SteadyClock().now() + time; }

// Two endpoints, of which the first can be cut off.
class CuttableTransportTest : public testing::TestWithParam<std::string> {
 protected:
  CuttableTransportTest() {
    auto group = connect_group(GetParam(), 2);
    end_ = std::make_unique<CuttableTransport>(std::move(group[0]), faults_);
    peer_ = std::move(group[1]);
  }

  std::shared_ptr<LinkFaults> faults_ = std::make_shared<LinkFaults>();
  std::unique_ptr<CuttableTransport> end_;
  std::unique_ptr<Transport> peer_;
};

INSTANTIATE_TEST_SUITE_P(Over, CuttableTransportTest, testing::ValuesIn(testing_support::all_wires()),
                         [](const auto& wire) { return wire.param; });

TEST_P(CuttableTransportTest, CarriesEverythingWhileItIsWhole) {
  ASSERT_TRUE(end_->send(1, "there", {}, nullptr, soon()).ok());
  Result<Message> message = peer_->receive(soon());
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->header(), "there");
  ASSERT_TRUE(peer_->send(0, "and back", {}, nullptr, soon()).ok());
  message = end_->receive(soon());
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->header(), "and back");
}

TEST_P(CuttableTransportTest, HandsOverNothingUntilTheCutIsOverAndThenAllInOrder) {
  faults_->begin(LinkFault::kCut, soon());
  for (const char* text : {"one", "two", "three"}) ASSERT_TRUE(peer_->send(0, text, {}, nullptr, soon()).ok());
  EXPECT_EQ(end_->receive(in(milliseconds(5))).status().code(), Code::kDeadlineExceeded);
  faults_->begin(LinkFault::kCut, {});
  for (const char* text : {"one", "two", "three"}) {
    Result<Message> message = end_->receive(soon());
    ASSERT_TRUE(message.ok());
    EXPECT_EQ(message->header(), text);
  }
}

TEST_P(CuttableTransportTest, SendsWhatWasKeptBackInOrderOnceItIsWhole) {
  const Result<std::span<std::byte>> memory = end_->allocate(64);
  ASSERT_TRUE(memory.ok());
  faults_->begin(LinkFault::kCut, soon());
  PendingSends pending;
  for (const char* text : {"one", "two"}) ASSERT_TRUE(end_->send(1, text, *memory, &pending, soon()).ok());
  EXPECT_EQ(end_->wait(pending, in(milliseconds(5))).code(), Code::kDeadlineExceeded);
  EXPECT_EQ(peer_->receive(in(milliseconds(5))).status().code(), Code::kDeadlineExceeded);
  EXPECT_FALSE(pending.none());
  faults_->begin(LinkFault::kCut, {});
  std::jthread reader([&] {
    for (const char* text : {"one", "two"}) {
      Result<Message> message = peer_->receive(soon());
      ASSERT_TRUE(message.ok());
      EXPECT_EQ(message->header(), text);
      EXPECT_EQ(message->payload().size(), 64u);
    }
  });
  EXPECT_TRUE(end_->wait(pending, soon()).ok());
  EXPECT_TRUE(pending.none());
}

TEST_P(CuttableTransportTest, IsCutInTheMidstOfAWait) {
  std::jthread cutter([&] {
    faults_->begin(LinkFault::kCut, in(milliseconds(40)));
    ASSERT_TRUE(peer_->send(0, "late", {}, nullptr, soon()).ok());
  });
  Result<Message> message = end_->receive(soon());
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->header(), "late");
  EXPECT_GE(SteadyClock().now(), faults_->until(LinkFault::kCut));
}

TEST_P(CuttableTransportTest, EndsAWaitThatIsInterruptedWhileItIsCut) {
  faults_->begin(LinkFault::kCut, soon());
  std::jthread interrupter([&] { end_->interrupt(); });
  EXPECT_EQ(end_->receive(soon()).status().code(), Code::kCancelled);
}

}  // namespace
}  // namespace syncopate
