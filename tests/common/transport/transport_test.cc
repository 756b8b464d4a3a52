// What every transport promises, run over each of them.
#include "common/transport/transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <cstring>
#include <numeric>
#include <thread>

#include "common/transport/inproc_transport.h"
#include "common/transport/make_transport.h"
#include "tests/support/cluster.h"
#include "tests/support/rank_host.h"
#include "tests/support/test_keys.h"

namespace syncopate {
namespace {

using testing_support::connect_group;
using testing_support::soon;

std::span<float> floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

struct Wire {
  std::string name;
  int connections = 1;
  bool encrypted = false;
};

std::vector<Wire> every_wire() {
  std::vector<Wire> wires;
  for (const std::string& name : testing_support::all_wires()) wires.push_back({name});
  wires.push_back({"ipc", 4});
  wires.push_back({"tcp", 4});
  wires.push_back({"sockets", 1, true});
  wires.push_back({"simulated"});
  return wires;
}

std::string test_name(const testing::TestParamInfo<Wire>& wire) {
  return wire.param.name + (wire.param.connections == 1 ? "" : "By" + std::to_string(wire.param.connections)) +
         (wire.param.encrypted ? "Encrypted" : "");
}

// Over the simulated wire ranks are actors, and times are virtual.
class EveryTransport : public testing::TestWithParam<Wire> {
 protected:
  std::vector<std::unique_ptr<Transport>> connect(int size) { return host_->connect(size); }
  void run_ranks(int size, const std::function<void(int rank)>& body) { host_->run_ranks(size, body); }
  TimePoint now() { return host_->threads().clock().now(); }
  TimePoint soon() { return now() + std::chrono::seconds(60); }

  const std::unique_ptr<testing_support::RankHost> host_ =
      GetParam().name == "simulated"
          ? testing_support::simulated_rank_host()
          : testing_support::real_rank_host(GetParam().name, GetParam().connections, GetParam().encrypted);
};

// A group of one.
Result<std::unique_ptr<Transport>> make_alone(TransportKind kind, int connections) {
  InProcRendezvous rendezvous;
  return make_transport(
      kind, {.run_id = "test", .group = "test", .keys = testing_support::test_keys(), .connections = connections},
      rendezvous, soon());
}

// The wires over which a receiver reads the sender's own memory.
class InPlaceTransport : public EveryTransport {};

// The wires that can tell that a peer is gone.
class TransportThatTellsOfLoss : public EveryTransport {};

INSTANTIATE_TEST_SUITE_P(Wire, TransportThatTellsOfLoss,
                         testing::Values(Wire{"inproc"}, Wire{"shm"}, Wire{"sockets"}, Wire{"sockets", 1, true},
                                         Wire{"shaped"}, Wire{"simulated"}),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Wire, InPlaceTransport, testing::Values(Wire{"inproc"}, Wire{"shm"}, Wire{"shaped"}),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Wire, EveryTransport, testing::ValuesIn(every_wire()), test_name);

TEST_P(EveryTransport, DeliversHeadersAndPayloadsOfEverySizeUnchanged) {
  const auto numbers = [](std::size_t count) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 0.5f);
    return values;
  };
  const std::vector<std::size_t> counts{0, 1, 3, 1000, 1024, 100000, 3000000};
  auto group = connect(2);
  EXPECT_STREQ(group[0]->name(), GetParam().name == "shaped" ? "shm" : GetParam().name.c_str());
  run_ranks(2, [&](int rank) {
    Transport& self = *group[static_cast<std::size_t>(rank)];
    for (const std::size_t count : counts) {
      const std::string header = "header of " + std::to_string(count);
      if (rank == 1) {
        const Result<Message> message = self.receive(soon());
        ASSERT_TRUE(message.ok()) << message.status().message();
        EXPECT_EQ(message->from(), 0);
        EXPECT_EQ(message->header(), header);
        EXPECT_TRUE(std::ranges::equal(message->floats(), numbers(count)));
        continue;
      }
      Result<std::span<std::byte>> memory = self.allocate(count * sizeof(float));
      ASSERT_TRUE(memory.ok());
      std::ranges::copy(numbers(count), floats(*memory).begin());
      PendingSends pending;
      ASSERT_TRUE(self.send(1, header, *memory, &pending, soon()).ok());
      EXPECT_TRUE(self.wait(pending, soon()).ok());
    }
  });
  EXPECT_EQ(group[1]->counters().payload_bytes_in, group[0]->counters().payload_bytes_out);
}

TEST_P(EveryTransport, RefusesAHeaderThatNoFrameHolds) {
  auto group = connect(2);
  const std::string too_long(kMaxWireHeaderBytes + 1, 'h');
  EXPECT_EQ(group[0]->send(1, too_long, {}, nullptr, soon()).code(), Code::kInvalidArgument);
  ASSERT_TRUE(group[0]->send(1, "short", {}, nullptr, soon()).ok());
  const Result<Message> message = group[1]->receive(soon());
  ASSERT_TRUE(message.ok()) << message.status().message();
  EXPECT_EQ(message->header(), "short");
}

TEST_P(EveryTransport, KeepsTheOrderOfEachSender) {
  constexpr int kRanks = 4, kMessages = 500;
  auto group = connect(kRanks);
  run_ranks(kRanks, [&](int rank) {
    Transport& self = *group[static_cast<std::size_t>(rank)];
    if (rank != 0) {
      for (int i = 0; i < kMessages; ++i) ASSERT_TRUE(self.send(0, std::to_string(i), {}, nullptr, soon()).ok());
      return;
    }
    std::vector<int> next(kRanks, 0);
    for (int i = 0; i < kMessages * (kRanks - 1); ++i) {
      Result<Message> message = self.receive(soon());
      ASSERT_TRUE(message.ok());
      ASSERT_EQ(message->header(), std::to_string(next[static_cast<std::size_t>(message->from())]++));
    }
  });
}

TEST_P(EveryTransport, KeepsTheOrderOfMessagesOfDifferentSizes) {
  constexpr int kRanks = 3, kMessages = 300;
  // Each message is a part of the same numbers: which one says what it must hold.
  constexpr std::size_t kFloats = 200000;
  const auto offset_of = [](int i) { return static_cast<std::size_t>(i) * 7; };
  const auto count_of = [](int i) { return std::array<std::size_t, 5>{150000, 0, 10000, 60000, 100}[i % 5]; };
  auto group = connect(kRanks);
  run_ranks(kRanks, [&](int rank) {
    Transport& self = *group[static_cast<std::size_t>(rank)];
    if (rank != 0) {
      Result<std::span<std::byte>> memory = self.allocate(kFloats * sizeof(float));
      ASSERT_TRUE(memory.ok());
      std::iota(floats(*memory).begin(), floats(*memory).end(), 0.0f);
      PendingSends pending;
      for (int i = 0; i < kMessages; ++i) {
        const std::span<float> part = floats(*memory).subspan(offset_of(i), count_of(i));
        ASSERT_TRUE(self.send(0, std::to_string(i), std::as_bytes(part), &pending, soon()).ok());
      }
      ASSERT_TRUE(self.wait(pending, soon()).ok());
      return;
    }
    std::vector<int> next(kRanks, 0);
    for (int received = 0; received < kMessages * (kRanks - 1); ++received) {
      Result<Message> message = self.receive(soon());
      ASSERT_TRUE(message.ok());
      const int i = next[static_cast<std::size_t>(message->from())]++;
      ASSERT_EQ(message->header(), std::to_string(i));
      ASSERT_EQ(message->floats().size(), count_of(i));
      for (std::size_t k = 0; k < count_of(i); ++k) {
        ASSERT_EQ(message->floats()[k], static_cast<float>(offset_of(i) + k));
      }
    }
    EXPECT_EQ(self.counters().dropped, 0);
  });
}

TEST(ZmqTransport, RefusesANumberOfConnectionsThatCannotBe) {
  for (const int connections : {-1, 0, 17}) {
    const Result<std::unique_ptr<Transport>> transport = make_alone(TransportKind::kTcp, connections);
    ASSERT_FALSE(transport.ok());
    EXPECT_EQ(transport.status().code(), Code::kInvalidArgument);
    EXPECT_EQ(transport.status().message(), std::to_string(connections) + " connections: must be 1 to 16");
  }
}

// As members do that are told at the same moment that the group is another one. libzmq would end the process here if a
// message were several frames of its own.
TEST(ZmqTransport, MayBeClosedAtBothEndsInTheMidstOfAMessage) {
  const std::vector<std::byte> payload(4 << 20);
  for (int round = 0; round < 60; ++round) {
    auto group = connect_group("tcp", 2);
    PendingSends pending;
    for (int i = 0; i < 6; ++i) ASSERT_TRUE(group[0]->send(1, "a part of it", payload, &pending, soon()).ok());
    ASSERT_TRUE(group[1]->receive(soon()).ok());
    group[0]->interrupt();
    std::barrier both(2);
    const std::jthread sender([&] {
      both.arrive_and_wait();
      group[0].reset();
    });
    both.arrive_and_wait();
    group[1].reset();
  }
}

TEST_P(InPlaceTransport, HoldsThePayloadUntilTheReceiverIsDoneWithIt) {
  auto group = connect(2);
  Result<std::span<std::byte>> memory = group[0]->allocate(1 << 20);
  ASSERT_TRUE(memory.ok());
  PendingSends pending;
  EXPECT_TRUE(pending.none());
  ASSERT_TRUE(group[0]->send(1, "x", *memory, &pending, soon()).ok());
  {
    Result<Message> message = group[1]->receive(soon());
    ASSERT_TRUE(message.ok());
    group[0]->progress();
    EXPECT_FALSE(pending.none());
    floats(*memory)[7] = 42;  // the receiver reads this very memory
    EXPECT_EQ(message->floats()[7], 42);
  }
  EXPECT_TRUE(group[0]->wait(pending, soon()).ok());
  EXPECT_TRUE(pending.none());
}

TEST_P(EveryTransport, StopsReceivingAtTheDeadline) {
  auto group = connect(2);
  const TimePoint deadline = now() + std::chrono::milliseconds(30);
  EXPECT_EQ(group[0]->receive(deadline).status().code(), Code::kDeadlineExceeded);
  EXPECT_GE(now(), deadline);
}

TEST_P(EveryTransport, IsInterruptedFromAnotherThread) {
  auto group = connect(2);
  const auto interrupter = host_->threads().start("interrupter", [&] { group[0]->interrupt(); });
  EXPECT_EQ(group[0]->receive(soon()).status().code(), Code::kCancelled);
  EXPECT_EQ(group[0]->receive(soon()).status().code(), Code::kCancelled);
}

TEST_P(TransportThatTellsOfLoss, TellsOfALostPeerAfterItsLastMessage) {
  auto group = connect(3);
  ASSERT_TRUE(group[1]->send(0, "last words", {}, nullptr, soon()).ok());
  group[1].reset();
  Result<Message> message = group[0]->receive(soon());
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->header(), "last words");
  EXPECT_EQ(group[0]->receive(soon()).status().code(), Code::kPeerLost);
  const TimePoint short_wait = now() + std::chrono::milliseconds(30);
  EXPECT_EQ(group[0]->receive(short_wait).status().code(), Code::kDeadlineExceeded) << "told twice";
}

TEST_P(TransportThatTellsOfLoss, LetsGoOfWhatALostPeerHeld) {
  auto group = connect(2);
  Result<std::span<std::byte>> memory = group[0]->allocate(1 << 16);
  ASSERT_TRUE(memory.ok());
  PendingSends pending;
  ASSERT_TRUE(group[0]->send(1, "never read", *memory, &pending, soon()).ok());
  group[1].reset();
  EXPECT_TRUE(group[0]->wait(pending, soon()).ok());
}

TEST(ShmTransport, HoldsTheSenderBackWhenTheInboxIsFull) {
  auto group = connect_group("shm", 2);
  Status status;
  int sent = 0;
  while (status.ok() && sent < 10000) {
    status = group[0]->send(1, "more", {}, nullptr, SteadyClock().now() + std::chrono::milliseconds(20));
    if (status.ok()) ++sent;
  }
  EXPECT_EQ(status.code(), Code::kDeadlineExceeded);
  for (int i = 0; i < sent; ++i) ASSERT_TRUE(group[1]->receive(soon()).ok());
  EXPECT_TRUE(group[0]->send(1, "again", {}, nullptr, soon()).ok());
}

TEST(ShmTransport, DoesNotReceiveAgainWhatItHolds) {
  auto group = connect_group("shm", 2);
  Result<std::span<std::byte>> memory = group[0]->allocate(64);
  ASSERT_TRUE(memory.ok());
  const auto send = [&](int i) {
    const TimePoint deadline = SteadyClock().now() + std::chrono::milliseconds(20);
    return group[0]->send(1, std::to_string(i), *memory, nullptr, deadline);
  };
  std::vector<Message> held;
  while (send(static_cast<int>(held.size())).ok()) {
    Result<Message> message = group[1]->receive(soon());
    ASSERT_TRUE(message.ok());
    EXPECT_EQ(message->header(), std::to_string(held.size()));
    held.push_back(std::move(*message));
    ASSERT_LT(held.size(), 10000u);
  }
  const TimePoint shortly = SteadyClock().now() + std::chrono::milliseconds(20);
  EXPECT_EQ(group[1]->receive(shortly).status().code(), Code::kDeadlineExceeded);
  held.erase(held.begin());
  EXPECT_TRUE(send(0).ok());
}

TEST_P(EveryTransport, EchoesThousandsOfMessagesBothWays) {
  auto group = connect(2);
  constexpr int kRounds = 2000;
  run_ranks(2, [&](int rank) {
    Transport& self = *group[static_cast<std::size_t>(rank)];
    Result<std::span<std::byte>> memory = self.allocate(16 * 1024);
    ASSERT_TRUE(memory.ok());
    PendingSends pending;
    for (int round = 0; round < kRounds; ++round) {
      floats(*memory)[0] = static_cast<float>(round);
      if (rank == 0) {
        ASSERT_TRUE(self.send(1, "ping", *memory, &pending, soon()).ok());
      }
      {
        Result<Message> message = self.receive(soon());
        ASSERT_TRUE(message.ok()) << message.status().message();
        ASSERT_EQ(message->floats()[0], static_cast<float>(round));
      }
      if (rank == 1) {
        ASSERT_TRUE(self.send(0, "pong", *memory, &pending, soon()).ok());
      }
      ASSERT_TRUE(self.wait(pending, soon()).ok());
    }
  });
}

}  // namespace
}  // namespace syncopate
