// Both directions of several processes' links together, beside links that pass packets one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <random>

#include "common/transport/fair_egress.h"
#include "common/transport/fair_ingress.h"

namespace syncopate {
namespace {

constexpr int kProcesses = 5;
constexpr Duration kPacket = std::chrono::microseconds(12);  // 1500 bytes at 1 Gb/s

struct Sent {
  TimePoint time;
  int from = 0, to = 0;
  Duration length{};
};
// When each has arrived, in the order of the messages.
using Arrivals = std::vector<TimePoint>;

// What ShapedTransport does, with no latency: each send revises what others know.
Arrivals by_flows(const std::vector<Sent>& messages) {
  std::vector<FairEgress> out(kProcesses);
  std::vector<FairIngress> in(kProcesses);
  std::map<std::pair<int, int>, std::deque<std::size_t>> coming;
  Arrivals arrivals(messages.size());
  const auto take = [&](TimePoint now) {
    for (int to = 0; to < kProcesses; ++to) {
      FairIngress& link = in[static_cast<std::size_t>(to)];
      while (link.next(0) <= now) {
        const TimePoint next = link.next(0);
        for (const LinkConnection& taken : link.take(next)) {
          std::deque<std::size_t>& numbers = coming[{taken.peer, to}];
          arrivals[numbers.front()] = next;
          numbers.pop_front();
        }
      }
    }
  };
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Sent& sent = messages[i];
    take(sent.time - Duration(1));
    FairEgress& link = out[static_cast<std::size_t>(sent.from)];
    const LinkPassage leaves = link.send(sent.time, {0, sent.to}, sent.length);
    in[static_cast<std::size_t>(sent.to)].add({0, sent.from}, leaves, sent.length);
    coming[{sent.from, sent.to}].push_back(i);
    for (const LinkConnection& late : link.outdated(0)) {
      in[static_cast<std::size_t>(late.peer)].revise({0, sent.from}, link.say(late, 12));
    }
  }
  take(TimePoint::max() - Duration(1));
  return arrivals;
}

// A link that serves its connections in turn, a packet each. Returns when each packet has passed.
struct Packet {
  TimePoint time;  // when it comes to the link, or has passed it
  int connection = 0;
  std::size_t message = 0;
  bool is_last = false;
};
std::vector<Packet> in_turn(std::vector<Packet> coming) {
  std::ranges::stable_sort(coming, std::less(), &Packet::time);
  std::map<int, std::deque<Packet>> queues;
  std::vector<Packet> passed;
  TimePoint now;
  int last = 0;
  std::size_t next = 0;
  std::size_t waiting = 0;
  while (waiting > 0 || next < coming.size()) {
    if (waiting == 0) now = std::max(now, coming[next].time);
    for (; next < coming.size() && coming[next].time <= now; ++next, ++waiting) {
      queues[coming[next].connection].push_back(coming[next]);
    }
    while (queues[last = (last + 1) % kProcesses].empty()) {
    }
    now += kPacket;
    passed.push_back(queues[last].front());
    passed.back().time = now;
    queues[last].pop_front();
    --waiting;
  }
  return passed;
}

Arrivals by_packets(const std::vector<Sent>& messages) {
  std::vector<std::vector<Packet>> in(kProcesses);
  for (int from = 0; from < kProcesses; ++from) {
    std::vector<Packet> out;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const Sent& sent = messages[i];
      for (int packet = 0; sent.from == from && packet < sent.length / kPacket; ++packet) {
        out.push_back({sent.time, sent.to, i, packet + 1 == sent.length / kPacket});
      }
    }
    for (Packet& packet : in_turn(out)) {
      const int to = std::exchange(packet.connection, from);
      in[static_cast<std::size_t>(to)].push_back(packet);
    }
  }
  Arrivals arrivals(messages.size());
  for (const std::vector<Packet>& coming : in) {
    for (const Packet& packet : in_turn(coming)) {
      if (packet.is_last) arrivals[packet.message] = packet.time;
    }
  }
  return arrivals;
}

// A packet waits for one of each other connection, in turn, at either link, and is whole before it goes on.
TEST(FairLinks, AgreeWithPacketsInTurn) {
  std::mt19937 random(1);
  for (int round = 0; round < 100; ++round) {
    std::vector<Sent> messages;
    TimePoint now = TimePoint{} + std::chrono::seconds(1);
    for (int i = 0; i < 40; ++i) {
      now += random() % (round % 5 == 0 ? 1 : 60) * kPacket;
      const auto from = static_cast<int>(random() % kProcesses);
      const auto to = (from + 1 + static_cast<int>(random() % (kProcesses - 1))) % kProcesses;
      messages.push_back({now, from, to, (1 + random() % 200) * kPacket});
    }
    const Arrivals flows = by_flows(messages), packets = by_packets(messages);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const double apart = static_cast<double>((flows[i] - packets[i]).count()) / static_cast<double>(kPacket.count());
      EXPECT_LE(apart, 3 * kProcesses) << "round " << round << ", message " << i;
      EXPECT_GE(apart, -3 * kProcesses) << "round " << round << ", message " << i;
    }
  }
}

// Rounding loses nothing: messages of all lengths and at all times arrive, each connection's in order.
TEST(FairLinks, LoseNothing) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<Sent> messages;
    TimePoint now = TimePoint{} + std::chrono::hours(1000);
    for (int i = 0; i < 500; ++i) {
      now += Duration(random() % (round % 2 == 0 ? 200000 : 2000000));
      const auto from = static_cast<int>(random() % kProcesses);
      const auto to = (from + 1 + static_cast<int>(random() % (kProcesses - 1))) % kProcesses;
      messages.push_back({now, from, to, Duration(1 + random() % 2000000)});
    }
    const Arrivals arrivals = by_flows(messages);
    std::map<std::pair<int, int>, TimePoint> last;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      TimePoint& before = last[{messages[i].from, messages[i].to}];
      EXPECT_GE(arrivals[i], messages[i].time + messages[i].length) << "round " << round << ", message " << i;
      EXPECT_GE(arrivals[i], before);
      before = arrivals[i];
    }
  }
}

// W workers push to K servers at once, and are answered: all gradients are there at the end, as over TCP.
TEST(FairLinks, LetAllPushesToAServerEndTogether) {
  std::vector<Sent> messages;
  for (int worker = 0; worker < 3; ++worker) {
    for (int server = 3; server < 5; ++server) {
      messages.push_back({TimePoint{} + std::chrono::seconds(1), worker, server, 100 * kPacket});
    }
  }
  for (const TimePoint arrival : by_flows(messages)) {
    EXPECT_LE((arrival - TimePoint{} - std::chrono::seconds(1) - 300 * kPacket).count(), 6);
    EXPECT_GE((arrival - TimePoint{} - std::chrono::seconds(1) - 300 * kPacket).count(), -6);
  }
}

}  // namespace
}  // namespace syncopate
