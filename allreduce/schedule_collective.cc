// Runs a schedule over a transport: sends each step's part, waits for the part that it expects, and reduces or copies
// it straight from where it was received. Holds no decision: which parts go where stands in the schedule.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "allreduce/collective.h"
#include "allreduce/schedule.h"
#include "allreduce/wire.pb.h"

namespace syncopate::allreduce {
namespace {

void add_into(std::span<float> sum, std::span<const float> part) {
  float* __restrict to = sum.data();
  const float* __restrict from = part.data();
  for (std::size_t i = 0; i < sum.size(); ++i) to[i] += from[i];
}

class ScheduleCollective final : public Collective {
 public:
  explicit ScheduleCollective(Transport& transport)
      : transport_(transport), early_(static_cast<std::size_t>(transport.size())) {}

  int rank() const override { return transport_.rank(); }
  int size() const override { return transport_.size(); }
  const char* name() const override { return "ring"; }

  Result<std::span<float>> allocate(std::size_t elements) override {
    Result<std::span<std::byte>> bytes = transport_.allocate(elements * sizeof(float));
    if (!bytes.ok()) return bytes.status();
    return std::span<float>(reinterpret_cast<float*>(bytes->data()), elements);
  }

  Status all_reduce(std::span<float> buffer, TimePoint deadline) override {
    return run(ring_of(buffer.size()), buffer, deadline).in("all_reduce");
  }
  Status broadcast(std::span<float> buffer, int root, TimePoint deadline) override {
    return run(binomial_broadcast(rank(), size(), buffer.size(), root), buffer, deadline).in("broadcast");
  }
  Status barrier(TimePoint deadline) override {
    return run(dissemination_barrier(rank(), size()), {}, deadline).in("barrier");
  }

  void interrupt() override { transport_.interrupt(); }
  TransportCounters counters() const override { return transport_.counters(); }

 private:
  // Schedules of the few lengths that a job has are made once.
  const Schedule& ring_of(std::size_t length) {
    const auto [found, is_new] = rings_.try_emplace(length);
    if (is_new) found->second = ring_all_reduce(rank(), size(), length);
    return found->second;
  }

  Status run(const Schedule& schedule, std::span<float> buffer, TimePoint deadline) {
    ++operation_;
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const ScheduleStep& step = schedule[i];
      if (step.send) SYNCOPATE_RETURN_IF_ERROR(send(*step.send, i, buffer, deadline));
      if (step.receive) SYNCOPATE_RETURN_IF_ERROR(receive(*step.receive, buffer, deadline));
    }
    return transport_.wait(pending_, deadline);
  }

  Status send(const SendPart& part, std::size_t step, std::span<const float> buffer, TimePoint deadline) {
    wire::Part header;
    header.set_operation(operation_);
    header.set_step(static_cast<std::uint32_t>(step));
    header.set_begin(part.range.begin);
    header.set_end(part.range.end);
    return transport_.send(part.peer, header.SerializeAsString(), std::as_bytes(slice(buffer, part.range)), &pending_,
                           deadline);
  }

  Status receive(const ReceivePart& part, std::span<float> buffer, TimePoint deadline) {
    Result<Message> message = next_from(part.peer, deadline);
    if (!message.ok()) return message.status().in(fmt::format("waiting for rank {}", part.peer));
    SYNCOPATE_RETURN_IF_ERROR(check(*message, part));
    const std::span<float> own = slice(buffer, part.range);
    if (part.then == ReceivePart::Then::kReduce) {
      add_into(own, message->floats());
    } else {
      std::copy(message->floats().begin(), message->floats().end(), own.begin());
    }
    return Status();
  }

  // A peer may be ahead of what this rank is waiting for: other peers' messages are kept until it is their turn.
  Result<Message> next_from(int peer, TimePoint deadline) {
    std::deque<Message>& kept = early_[static_cast<std::size_t>(peer)];
    while (kept.empty()) {
      Result<Message> message = transport_.receive(deadline);
      if (!message.ok()) return message.status();
      if (message->from() == peer) return message;
      early_[static_cast<std::size_t>(message->from())].push_back(std::move(*message));
    }
    Message message = std::move(kept.front());
    kept.pop_front();
    return message;
  }

  Status check(const Message& message, const ReceivePart& expected) const {
    wire::Part header;
    const bool parsed = header.ParseFromString(message.header());
    if (parsed && header.operation() == operation_ && header.begin() == expected.range.begin &&
        header.end() == expected.range.end && message.payload().size() == expected.range.size() * sizeof(float)) {
      return Status();
    }
    return Status(
        Code::kDataLoss,
        fmt::format("rank {} sent operation {}, elements {} to {} in {} bytes where operation {}, elements {} "
                    "to {} were due: ranks disagree on what they do",
                    message.from(), header.operation(), header.begin(), header.end(), message.payload().size(),
                    operation_, expected.range.begin, expected.range.end));
  }

  Transport& transport_;
  std::uint64_t operation_ = 0;
  PendingSends pending_;
  std::vector<std::deque<Message>> early_;  // by sender
  std::map<std::size_t, Schedule> rings_;   // by length
};

}  // namespace

std::unique_ptr<Collective> make_ring_collective(Transport& transport) {
  return std::make_unique<ScheduleCollective>(transport);
}

}  // namespace syncopate::allreduce
