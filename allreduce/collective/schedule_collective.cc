// Carries out a schedule: sends each step's part, waits for the part that it expects, and reduces or copies it straight
// from where it was received. Holds no decision: which parts go where stands in the schedule.
#include "allreduce/collective/schedule_collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "allreduce/collective/part_header.h"
#include "allreduce/collective/receive_buffers.h"
#include "allreduce/schedule/algorithms.h"
#include "allreduce/schedule/part_marks.h"
#include "common/float_loops.h"
#include "common/os/aligned_buffer.h"

namespace syncopate::allreduce {
namespace {

void take_into(std::span<float> buffer, const ReceivePart& part, std::span<const float> values) {
  const std::span<float> own = slice(buffer, part.range);
  if (SharedZeros::holds(own.data()) && SharedZeros::holds(values.data())) return;
  if (part.then == ReceivePart::Then::kReduce) {
    add(values.data(), own.data(), own.size());
  } else {
    std::copy(values.begin(), values.end(), own.begin());
  }
}

ScheduleOptions with_hosts(ScheduleOptions options, int ranks) {
  if (options.ranks_by_host.empty()) options.ranks_by_host = one_host(ranks);
  return options;
}

class TransportCollective final : public ScheduleCollective {
 public:
  TransportCollective(Transport& transport, const ScheduleOptions& options)
      : transport_(transport),
        options_(with_hosts(options, transport.size())),
        segment_(options.segment_bytes / sizeof(float)),
        links_(static_cast<std::size_t>(transport.size())),
        received_(transport.size()) {}

  int rank() const override { return transport_.rank(); }
  int size() const override { return transport_.size(); }
  const char* name() const override { return cost_model_ ? "auto" : name_of(options_.kind); }

  Result<std::span<float>> allocate(std::size_t elements) override {
    SYNCOPATE_ASSIGN_OR_RETURN(std::span<std::byte> bytes, transport_.allocate(elements * sizeof(float)));
    return std::span<float>(reinterpret_cast<float*>(bytes.data()), elements);
  }

  Status all_reduce(std::span<float> buffer, TimePoint deadline) override {
    if (options_.player != nullptr && !buffer.empty() && kind_for(buffer.size_bytes()) == ScheduleKind::kRing) {
      const std::optional<Status> summed = options_.player->sum_by_ring(rank(), buffer, deadline);
      if (summed) return waited_for(waiting_for(), summed->in("all_reduce"));
    }
    const Schedule& schedule = kept({Operation::kAllReduce, 0, buffer.size()}, [&] {
      return all_reduce_schedule(kind_for(buffer.size_bytes()), rank(), size(), buffer.size(), segment_,
                                 options_.ranks_by_host);
    });
    return run(schedule, {.operation = ++operations_}, buffer, deadline).in("all_reduce");
  }
  Status reduce_scatter(std::span<float> buffer, TimePoint deadline) override {
    const Schedule& schedule = kept({Operation::kReduceScatter, 0, buffer.size()}, [&] {
      return reduce_scatter_schedule(options_.kind, rank(), size(), buffer.size(), segment_);
    });
    return run(schedule, {.operation = ++operations_}, buffer, deadline).in("reduce_scatter");
  }
  Status all_gather(std::span<float> buffer, TimePoint deadline) override {
    const Schedule& schedule = kept({Operation::kAllGather, 0, buffer.size()}, [&] {
      return all_gather_schedule(options_.kind, rank(), size(), buffer.size(), segment_);
    });
    return run(schedule, {.operation = ++operations_}, buffer, deadline).in("all_gather");
  }
  Range own_part(std::size_t length) const override {
    return allreduce::own_part(options_.kind, rank(), size(), length);
  }
  Status broadcast(std::span<float> buffer, int root, TimePoint deadline) override {
    const Schedule& schedule = kept({Operation::kBroadcast, root, buffer.size()},
                                    [&] { return broadcast_schedule(rank(), size(), buffer.size(), root, segment_); });
    return run(schedule, {.operation = ++operations_}, buffer, deadline).in("broadcast");
  }
  Status barrier(TimePoint deadline) override {
    const Schedule& schedule = kept({Operation::kBarrier, 0, 0}, [&] { return barrier_schedule(rank(), size()); });
    return run(schedule, {.operation = ++operations_}, {}, deadline).in("barrier");
  }
  Status reduce_pair(std::span<float> buffer, int partner, TimePoint deadline) override {
    SYNCOPATE_RETURN_IF_ERROR(check_partner(partner));
    const Schedule& schedule = kept({Operation::kReducePair, partner, buffer.size()},
                                    [&] { return pair_schedule(rank(), partner, buffer.size(), segment_); });
    const PartHeader operation{.operation = ++link(partner).pair_operations, .kind = PartHeader::kOfPair};
    return run(schedule, operation, buffer, deadline).in("reduce_pair");
  }
  Status all_reduce_across_hosts(std::span<float> buffer, PartwiseSum& sum, TimePoint deadline) override {
    const Schedule& schedule = kept({Operation::kAcrossHosts, 0, buffer.size()}, [&] {
      Schedule ring;
      const OwnedChunk chunk = owned_chunk(rank(), buffer.size(), options_.ranks_by_host);
      if (!chunk.owners.empty()) append_ring(ring, chunk.owners, chunk.host, {0, buffer.size()}, segment_);
      return ring;
    });
    if (schedule.empty() && !buffer.empty()) {  // one host
      sum.contribute({0, buffer.size()});
      sum.take_sum({0, buffer.size()});
    }
    return run(schedule, {.operation = ++operations_}, buffer, deadline, &sum).in("all_reduce");
  }
  Status all_reduce_inside_host(std::span<float> buffer, TimePoint deadline) override {
    const Schedule& schedule = kept({Operation::kInsideHost, 0, buffer.size()}, [&] {
      Schedule ring;
      const std::vector<int>& members = options_.ranks_by_host[host_of(rank(), options_.ranks_by_host)];
      const auto place = static_cast<int>(std::ranges::find(members, rank()) - members.begin());
      append_ring(ring, members, place, {0, buffer.size()}, segment_);
      return ring;
    });
    return run(schedule, {.operation = ++operations_}, buffer, deadline).in("all_reduce");
  }
  Status all_to_all(std::span<const Bytes> given, std::span<Bytes> taken, TimePoint deadline) override {
    return exchange(given, taken, deadline).in("all_to_all");
  }

  void choose_by(const GroupLinks& links) override {
    cost_model_.emplace(options_.ranks_by_host, links, options_.segment_bytes);
    schedules_.clear();
  }
  ScheduleKind kind_for(std::size_t bytes) const override {
    return cost_model_ ? cost_model_->cheapest(bytes) : options_.kind;
  }
  const RanksByHost& ranks_by_host() const override { return options_.ranks_by_host; }

  void interrupt() override {
    transport_.interrupt();
    if (options_.player != nullptr) options_.player->interrupt(rank());
  }
  int waiting_for() const override {
    const int waits_for = waiting_for_.load(std::memory_order_relaxed);
    return called(waits_for < 0 && options_.player != nullptr ? options_.player->waiting_for(rank()) : waits_for);
  }
  TransportCounters counters() const override {
    TransportCounters counters = transport_.counters();
    if (options_.player != nullptr) {
      const TransportCounters played = options_.player->counters(rank());
      counters.payload_bytes_out += played.payload_bytes_out;
      counters.payload_bytes_in += played.payload_bytes_in;
    }
    counters.dropped += repeated_;
    return counters;
  }

 private:
  enum class Operation {
    kAllReduce,
    kReduceScatter,
    kAllGather,
    kAcrossHosts,
    kInsideHost,
    kBroadcast,
    kBarrier,
    kReducePair
  };
  using Key = std::tuple<Operation, int, std::size_t>;  // what, with root or partner, of how many elements

  // As it is called for whoever reads of waits; -1 stays.
  int called(int rank) const {
    return rank < 0 || options_.called.empty() ? rank : options_.called[static_cast<std::size_t>(rank)];
  }
  // `status` is of a wait for the rank.
  Status missing(int rank, const Status& status) {
    return waited_for(called(rank), status.in(fmt::format("waiting for rank {}", called(rank))));
  }

  // Where a part stands among all that come from one rank to another.
  struct Place {
    std::uint64_t operation = 0;  // 0: before the first
    std::uint32_t part = 0;
    auto operator<=>(const Place&) const = default;
  };

  // What this rank has to do with another.
  struct Link {
    std::list<Message> early;      // received, but not yet due; seldom any
    Place newest, newest_of_pair;  // of the parts that were taken
    PendingSends pending;          // sent, and perhaps still being read
    std::uint32_t sent = 0;        // parts of this operation
    std::uint32_t received = 0;
    std::uint64_t pair_operations = 0;
  };

  // Says whom this rank waits for while it lives.
  class Waiting {
   public:
    Waiting(std::atomic<int>& waiting_for, int peer) : waiting_for_(waiting_for) {
      waiting_for_.store(peer, std::memory_order_relaxed);
    }
    ~Waiting() { waiting_for_.store(-1, std::memory_order_relaxed); }

   private:
    std::atomic<int>& waiting_for_;
  };

  Link& link(int peer) {
    std::unique_ptr<Link>& found = links_[static_cast<std::size_t>(peer)];
    if (!found) found = std::make_unique<Link>();
    return *found;
  }

  // Schedules of the few operations that a job has are made once.
  template <typename Make>
  const Schedule& kept(const Key& key, Make&& make) {
    const auto [found, is_new] = schedules_.try_emplace(key);
    if (is_new) found->second = make();
    return found->second;
  }

  // `sum`, unless null, fills the buffer and takes what is in it.
  Status run(const Schedule& schedule, const PartHeader& operation, std::span<float> buffer, TimePoint deadline,
             PartwiseSum* sum = nullptr) {
    if (options_.player != nullptr && sum == nullptr && operation.kind == PartHeader::kOfAll) {
      const Status status = options_.player->play(rank(), schedule, buffer, deadline);
      return waited_for(waiting_for(), status);
    }
    SYNCOPATE_RETURN_IF_ERROR(make_room_for_copies(schedule));
    for (const auto& each : links_) {
      if (each) each->sent = each->received = 0;
    }
    const std::vector<PartMarks> marks = sum != nullptr ? marks_of(schedule) : std::vector<PartMarks>();
    for (std::size_t i = 0; i < schedule.size(); ++i) {
      const ScheduleStep& step = schedule[i];
      if (sum != nullptr && marks[i].send_is_first) sum->contribute(step.send->range);
      if (step.send) SYNCOPATE_RETURN_IF_ERROR(send(*step.send, operation, buffer, deadline));
      if (sum != nullptr && marks[i].receive_is_first) sum->contribute(step.receive->range);
      if (step.receive) SYNCOPATE_RETURN_IF_ERROR(receive(*step.receive, operation, buffer, deadline));
      if (sum != nullptr && marks[i].receive_is_last) sum->take_sum(step.receive->range);
    }
    return wait_for_sends(deadline);
  }

  // What was taken is copied: over some wires its sender, who waits until it is let go of, is this rank's receiver.
  Status exchange(std::span<const Bytes> given, std::span<Bytes> taken, TimePoint deadline) {
    const auto count = static_cast<std::size_t>(size()), own = static_cast<std::size_t>(rank());
    PartHeader header{.operation = ++operations_, .kind = PartHeader::kBytes};
    for (std::size_t step = 1; step < count; ++step) {  // each begins with another, so that all are sent to at once
      const std::size_t to = (own + step) % count;
      header.end = given[to].size();
      SYNCOPATE_RETURN_IF_ERROR(send(static_cast<int>(to), header, given[to], deadline));
    }
    for (std::size_t step = 1; step < count; ++step) {
      const std::size_t from = (own + count - step) % count;
      TraceSpan span(options_.tracer, traced(TraceKind::kPartTaken, static_cast<int>(from), header, 0));
      Result<Message> message = next_from(static_cast<int>(from), deadline);
      if (!message.ok()) {
        return missing(static_cast<int>(from), message.status());
      }
      header.end = message->payload().size();
      if (TraceEvent* const event = span.event()) event->bytes = static_cast<std::int64_t>(header.end);
      span.end();
      SYNCOPATE_RETURN_IF_ERROR(check(*message, header, 1));
      const std::span<std::byte> copy = received_.take(static_cast<int>(from), message->payload().size());
      std::ranges::copy(message->payload(), copy.begin());
      taken[from] = copy;
    }
    taken[own] = given[own];
    return wait_for_sends(deadline);
  }

  Status wait_for_sends(TimePoint deadline) {
    for (int peer = 0; peer < size(); ++peer) {
      const auto& each = links_[static_cast<std::size_t>(peer)];
      if (!each || each->pending.none()) continue;
      const Waiting waiting(waiting_for_, peer);
      const Status done = transport_.wait(each->pending, deadline);
      if (!done.ok()) return missing(peer, done);
    }
    return Status();
  }

  Status send(const SendPart& part, PartHeader header, std::span<const float> buffer, TimePoint deadline) {
    std::span<const float> values = slice(buffer, part.range);
    if (part.copied) values = copy_of(values);
    if (part.peer == rank()) {
      kept_aside_.push_back(values);
      return Status();
    }
    Link& to = link(part.peer);
    header.part = to.sent++;
    header.begin = part.range.begin;
    header.end = part.range.end;
    return send(part.peer, header, std::as_bytes(values), deadline);
  }

  Status send(int peer, const PartHeader& header, Bytes payload, TimePoint deadline) {
    const Waiting waiting(waiting_for_, peer);
    const TraceSpan span(options_.tracer, traced(TraceKind::kPartSent, peer, header, payload.size()));
    return transport_.send(peer, {reinterpret_cast<const char*>(&header), sizeof(header)}, payload, &link(peer).pending,
                           deadline);
  }

  Status receive(const ReceivePart& part, PartHeader expected, std::span<float> buffer, TimePoint deadline) {
    if (part.peer == rank()) {
      take(buffer, part, kept_aside_.front());
      kept_aside_.pop_front();
      return Status();
    }
    expected.part = link(part.peer).received++;
    expected.begin = part.range.begin;
    expected.end = part.range.end;
    TraceSpan span(options_.tracer,
                   traced(TraceKind::kPartTaken, part.peer, expected, part.range.size() * sizeof(float)));
    Result<Message> message = next_from(part.peer, deadline);
    if (!message.ok()) {
      return missing(part.peer, message.status());
    }
    span.end();
    SYNCOPATE_RETURN_IF_ERROR(check(*message, expected, sizeof(float)));
    take(buffer, part, message->floats());
    return Status();
  }

  void take(std::span<float> buffer, const ReceivePart& part, std::span<const float> values) {
    take_into(buffer, part, values);
    if (options_.clock != nullptr && part.then == ReceivePart::Then::kReduce) {
      options_.clock->processed(Processing::kSum, values.size_bytes());
    }
  }

  TraceEvent traced(TraceKind kind, int peer, const PartHeader& header, std::size_t bytes) const {
    return {.kind = kind,
            .shard = rank(),
            .peer = peer,
            .item = static_cast<std::int32_t>(header.part),
            .number = static_cast<std::int64_t>(header.operation),
            .value = header.kind + PartHeader::kKinds * options_.number,
            .bytes = static_cast<std::int64_t>(bytes)};
  }

  // A peer may be ahead of what this rank is waiting for: other peers' messages are kept until it is their turn.
  Result<Message> next_from(int peer, TimePoint deadline) {
    std::list<Message>& early = link(peer).early;
    const Waiting waiting(waiting_for_, peer);
    while (!early.empty()) {
      Message message = std::move(early.front());
      early.pop_front();
      if (!is_repeated(message)) return message;
    }
    while (true) {
      SYNCOPATE_ASSIGN_OR_RETURN(Message message, transport_.receive(deadline));
      if (is_repeated(message)) continue;  // it is let go of at once: its sender waits for that
      if (message.from() == peer) return message;
      link(message.from()).early.push_back(std::move(message));
    }
  }

  static std::optional<PartHeader> header_of(const Message& message) {
    PartHeader header;
    if (message.header().size() != sizeof(header)) return std::nullopt;
    std::memcpy(&header, message.header().data(), sizeof(header));
    if (header.kind > PartHeader::kBytes) return std::nullopt;
    return header;
  }

  Place& newest(const PartHeader& header, int from) {
    return header.kind == PartHeader::kOfPair ? link(from).newest_of_pair : link(from).newest;
  }
  // And counts it. Parts come in order: what is not behind the newest that was taken has come before.
  bool is_repeated(const Message& message) {
    const std::optional<PartHeader> header = header_of(message);
    const bool repeated = header && Place{header->operation, header->part} <= newest(*header, message.from());
    repeated_ += repeated;
    return repeated;
  }

  // `unit`: bytes of what the header counts.
  Status check(const Message& message, const PartHeader& expected, std::size_t unit) {
    const std::optional<PartHeader> header = header_of(message);
    if (!header) {
      return Status::data_loss(fmt::format("rank {} sent a header of {} bytes that is none of a part", message.from(),
                                           message.header().size()));
    }
    if (*header == expected && message.payload().size() == (expected.end - expected.begin) * unit) {
      newest(expected, message.from()) = {expected.operation, expected.part};
      return Status();
    }
    return Status::data_loss(
        fmt::format("rank {} sent {} in {} bytes where {} were due: ranks disagree on what they do", message.from(),
                    describe(*header), message.payload().size(), describe(expected)));
  }

  // All copies of one operation lie behind each other; the next operation begins when all have been read.
  Status make_room_for_copies(const Schedule& schedule) {
    copied_ = 0;
    kept_aside_.clear();
    std::size_t elements = 0;
    for (const ScheduleStep& step : schedule) {
      if (step.send && step.send->copied) elements += step.send->range.size();
    }
    if (elements <= copies_.size()) return Status();
    Result<std::span<float>> memory = allocate(std::bit_ceil(elements));
    if (memory.ok()) copies_ = *memory;
    return memory.status();
  }

  std::span<const float> copy_of(std::span<const float> values) {
    const std::span<float> copy = copies_.subspan(copied_, values.size());
    std::copy(values.begin(), values.end(), copy.begin());
    copied_ += values.size();
    return copy;
  }

  Transport& transport_;
  const ScheduleOptions options_;
  const std::size_t segment_;            // elements
  std::optional<CostModel> cost_model_;  // to choose by
  std::uint64_t operations_ = 0;
  std::vector<std::unique_ptr<Link>> links_;  // by peer; none of one with whom nothing was to do yet
  ReceiveBuffers received_;
  std::map<Key, Schedule> schedules_;
  std::span<float> copies_;
  std::size_t copied_ = 0;                         // of them, by this operation
  std::deque<std::span<const float>> kept_aside_;  // what this rank has sent to itself
  std::int64_t repeated_ = 0;                      // parts that came again, and were dropped
  std::atomic<int> waiting_for_{-1};
};

}  // namespace

std::unique_ptr<ScheduleCollective> make_schedule_collective(Transport& transport, const ScheduleOptions& options) {
  return std::make_unique<TransportCollective>(transport, options);
}

}  // namespace syncopate::allreduce
