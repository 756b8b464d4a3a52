#include "experiments/cluster/doctor/pair_measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "common/text/number.h"
#include "common/transport/make_transport.h"

namespace syncopate::experiments {
namespace {

constexpr int kRounds = 64;
constexpr std::size_t kMessageBytes = 32 * 1024;
// So many bytes are under way at most: enough for 10 Gb/s and a millisecond, and soon gone through a thin link.
constexpr int kMessagesUnderWay = 64;

// One of the two, which takes turns with the other.
class Member {
 public:
  Member(Transport& transport, TimePoint deadline) : transport_(transport), deadline_(deadline) {}

  Result<double> measure_latency() {
    std::vector<double> rounds;
    for (int round = 0; round < kRounds; ++round) {
      const TimePoint begin = clock_.now();
      if (transport_.rank() == 0) SYNCOPATE_RETURN_IF_ERROR(say("there"));
      SYNCOPATE_RETURN_IF_ERROR(hear().status());
      if (transport_.rank() == 1) SYNCOPATE_RETURN_IF_ERROR(say("back"));
      rounds.push_back(seconds(clock_.now() - begin));
    }
    std::ranges::nth_element(rounds, rounds.begin() + kRounds / 2);
    return rounds[kRounds / 2] / 2;
  }

  // Sends for so long as fast as the other takes it. Returns the bytes a second that the other has counted.
  Result<double> send_for(Duration length) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> payload, transport_.allocate(kMessageBytes));
    const TimePoint end = clock_.now() + length;
    PendingSends pending;
    int sent = 0, heard = 0;
    SYNCOPATE_RETURN_IF_ERROR(say("begin"));
    while (clock_.now() < end || sent < 2) {
      if (sent - heard < kMessagesUnderWay) {
        SYNCOPATE_RETURN_IF_ERROR(transport_.send(peer(), "data", payload, &pending, deadline_));
        ++sent;
        continue;
      }
      SYNCOPATE_RETURN_IF_ERROR(hear().status());
      ++heard;
    }
    SYNCOPATE_RETURN_IF_ERROR(say("end"));
    for (; heard < sent; ++heard) SYNCOPATE_RETURN_IF_ERROR(hear().status());
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string rate, hear());
    SYNCOPATE_RETURN_IF_ERROR(transport_.wait(pending, deadline_));
    return parse_number<double>(rate).value_or(0);
  }

  Status receive_all() {
    SYNCOPATE_RETURN_IF_ERROR(hear().status());  // begin
    const TimePoint begin = clock_.now();
    TimePoint last = begin;
    std::size_t bytes = 0;
    while (true) {
      SYNCOPATE_ASSIGN_OR_RETURN(const Message message, transport_.receive(deadline_));
      if (message.payload().empty()) break;
      bytes += message.payload().size();
      last = clock_.now();
      SYNCOPATE_RETURN_IF_ERROR(say("more"));
    }
    return say(fmt::format("{}", static_cast<double>(bytes) / std::max(seconds(last - begin), 1e-9)));
  }

 private:
  int peer() const { return 1 - transport_.rank(); }
  Status say(const std::string& text) { return transport_.send(peer(), text, {}, nullptr, deadline_); }
  Result<std::string> hear() {
    SYNCOPATE_ASSIGN_OR_RETURN(const Message message, transport_.receive(deadline_));
    return message.header();
  }

  Transport& transport_;
  const TimePoint deadline_;
  SteadyClock clock_;
};

Result<double> measure_bandwidth(Member& member, int rank, Duration sending) {
  double rate = 0;
  for (const int sender : {0, 1}) {
    if (sender != rank) {
      SYNCOPATE_RETURN_IF_ERROR(member.receive_all());
      continue;
    }
    SYNCOPATE_ASSIGN_OR_RETURN(rate, member.send_for(sending));
  }
  return rate;
}

}  // namespace

Result<PairFigures> measure_pair(const PairOptions& options, Rendezvous& rendezvous, TimePoint deadline) {
  Result<std::unique_ptr<Transport>> transport = make_socket_transport({.run_id = "doctor",
                                                                        .group = options.group,
                                                                        .rank = options.rank,
                                                                        .size = 2,
                                                                        .host = options.address,
                                                                        .keys = options.keys,
                                                                        .encrypted = true},
                                                                       rendezvous, deadline);
  if (!transport.ok()) return transport.status().in("connecting");
  Member member(**transport, deadline);
  const Result<double> latency = member.measure_latency();
  if (!latency.ok()) return latency.status().in("small messages");
  const Result<double> rate = measure_bandwidth(member, options.rank, options.sending);
  if (!rate.ok()) return rate.status().in("large messages");
  return PairFigures{.latency_us = *latency * 1e6, .bytes_per_second = *rate};
}

}  // namespace syncopate::experiments
