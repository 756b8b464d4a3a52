#include "allreduce/link_measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

namespace syncopate::allreduce {
namespace {

constexpr std::size_t kSizes[] = {64, 4096, 65536, 262144, std::size_t{1} << 20};
constexpr int kRounds = 24;  // of each size; the first third warms up
constexpr int kWarmup = 8;

// Rounds of messages between ranks that go through the same list of them.
class Rounds {
 public:
  Rounds(Transport& transport, TimePoint deadline)
      : transport_(transport), deadline_(deadline), early_(static_cast<std::size_t>(transport.size())) {}

  Status send(int peer, std::span<const std::byte> payload) {
    return transport_.send(peer, {}, payload, &pending_, deadline_);
  }
  Result<Message> receive(int peer) {
    std::deque<Message>& early = early_[static_cast<std::size_t>(peer)];
    while (early.empty()) {
      Result<Message> message = transport_.receive(deadline_);
      if (!message.ok()) return message.status().in(fmt::format("waiting for rank {}", peer));
      early_[static_cast<std::size_t>(message->from())].push_back(std::move(*message));
    }
    Message message = std::move(early.front());
    early.pop_front();
    return message;
  }
  Status sent() { return transport_.wait(pending_, deadline_); }

  // To the next rank, and from the one before.
  Status shift(std::span<const std::byte> payload) {
    const int rank = transport_.rank(), size = transport_.size();
    SYNCOPATE_RETURN_IF_ERROR(send((rank + 1) % size, payload));
    {
      const Result<Message> message = receive((rank + size - 1) % size);
      if (!message.ok()) return message.status();
    }
    return sent();
  }

 private:
  Transport& transport_;
  const TimePoint deadline_;
  PendingSends pending_;
  std::vector<std::deque<Message>> early_;  // by sender
};

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

double seconds_per_added_byte(const Clock& clock) {
  std::vector<float> sum(65536), part(65536, 1.0f);
  std::vector<double> times;
  for (int round = 0; round < kRounds; ++round) {
    const TimePoint begin = clock.now();
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    times.push_back(seconds(clock.now() - begin));
    part[0] = sum[1];  // what is added up is looked at
  }
  return median(times) / static_cast<double>(sum.size() * sizeof(float));
}

Result<LinkModel> measure(Rounds& rounds, std::span<const std::byte> memory, const Clock& clock) {
  std::vector<TransferSample> samples;
  for (const std::size_t bytes : kSizes) {
    std::vector<double> times;
    for (int round = 0; round < kRounds; ++round) {
      const TimePoint begin = clock.now();
      SYNCOPATE_RETURN_IF_ERROR(rounds.shift(memory.first(bytes)));
      if (round >= kWarmup) times.push_back(seconds(clock.now() - begin));
    }
    samples.push_back({bytes, median(times)});
  }
  Result<LinkModel> link = fit_link(samples);
  if (link.ok()) link->reduce_seconds_per_byte = seconds_per_added_byte(clock);
  return link;
}

}  // namespace

// Rank 0 says what it knows (all zeros: nothing); if that is nothing all measure, and rank 0 says what it has found.
Result<LinkModel> agree_on_link(Transport& transport, const std::optional<LinkModel>& known, const Clock& clock,
                                TimePoint deadline) {
  if (transport.size() < 2) return known.value_or(LinkModel{});
  Result<std::span<std::byte>> memory = transport.allocate(*std::ranges::max_element(kSizes));
  if (!memory.ok()) return memory.status();
  Rounds rounds(transport, deadline);
  // From rank 0 to all.
  const auto tell = [&](LinkModel& link) -> Status {
    if (transport.rank() == 0) {
      std::memcpy(memory->data(), &link, sizeof(link));
      for (int peer = 1; peer < transport.size(); ++peer) {
        SYNCOPATE_RETURN_IF_ERROR(rounds.send(peer, memory->first(sizeof(link))));
      }
      return rounds.sent();
    }
    const Result<Message> message = rounds.receive(0);
    if (!message.ok()) return message.status();
    if (message->payload().size() != sizeof(link)) {
      return Status(Code::kDataLoss, fmt::format("rank 0 sent {} bytes where the {} of a link's speed were due",
                                                 message->payload().size(), sizeof(link)));
    }
    std::memcpy(&link, message->payload().data(), sizeof(link));
    return {};
  };
  LinkModel link = known.value_or(LinkModel{});
  SYNCOPATE_RETURN_IF_ERROR(tell(link));
  if (link.seconds_per_byte > 0 || link.latency > 0) return link;
  const Result<LinkModel> measured = measure(rounds, *memory, clock);
  if (!measured.ok()) return measured.status();
  link = *measured;
  SYNCOPATE_RETURN_IF_ERROR(tell(link));
  return link;
}

}  // namespace syncopate::allreduce
