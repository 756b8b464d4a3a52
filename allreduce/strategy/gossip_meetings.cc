#include "allreduce/strategy/gossip_meetings.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "common/os/flush_denormals.h"

namespace syncopate::allreduce {

GossipMeetings::GossipMeetings(Transport& transport, SharedReplica& replica, std::size_t elements,
                               const Options& options, const Clock& clock)
    : transport_(transport),
      replica_(replica),
      elements_(elements),
      options_(options),
      clock_(clock),
      ledger_(transport.rank(), transport.size(), elements) {}

GossipMeetings::~GossipMeetings() {
  if (!thread_) return;
  transport_.interrupt();
  replica_.close();
}

Status GossipMeetings::start() {
  if (!is_active()) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> memory, transport_.allocate(elements_ * sizeof(float)));
    answer_ = {reinterpret_cast<float*>(memory.data()), elements_};
  }
  counted_ = transport_.counters();
  thread_ = options_.threads->start("communication", [this] { run(); });
  return {};
}

Status GossipMeetings::finish() {
  replica_.close();
  thread_.reset();
  SYNCOPATE_RETURN_IF_ERROR(status());
  for (int peer = 0; peer < transport_.size(); ++peer) {
    if (peer != transport_.rank()) SYNCOPATE_RETURN_IF_ERROR(send(peer, GossipLedger::end(), {}, deadline()));
  }
  return receive_until([&] { return ledger_.all_have_ended(); }, [](auto&&...) { return Status(); }, std::nullopt);
}

Status GossipMeetings::status() const {
  failure_.rethrow();
  const std::lock_guard lock(mutex_);
  return status_;
}

MeetingCosts GossipMeetings::take_costs() {
  const std::lock_guard lock(mutex_);
  return std::exchange(costs_, {});
}

std::int64_t GossipMeetings::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void GossipMeetings::run() {
  const FlushDenormals flush;
  failure_.carry([&] {
    Status status = is_active() ? ask() : answer();
    const std::lock_guard lock(mutex_);
    status_ = std::move(status);
  });
  // After a failure nobody waits for the weights, and none are on loan any more.
  replica_.close();
  replica_.give_back({});
}

Status GossipMeetings::ask() {
  while (replica_.wait_for_loan()) SYNCOPATE_RETURN_IF_ERROR(meet());
  return {};
}

Status GossipMeetings::meet() {
  const int partner = gossip_partner(options_.seed, transport_.rank(), meetings_++, transport_.size());
  if (partner == transport_.rank()) {
    replica_.give_back({});
    return {};
  }
  const TraceSpan span(options_.tracer, traced(partner));
  const TimePoint began = clock_.now(), until = deadline();
  SYNCOPATE_RETURN_IF_ERROR(send(partner, ledger_.offer_to(partner), replica_.loaned(), until));
  bool met = false;
  const auto take = [&](GossipLedger::Due due, const Message& message) -> Status {
    if (due != GossipLedger::Due::kTake) return {};
    // The partner has read the offer, but the wire may still hold it.
    SYNCOPATE_RETURN_IF_ERROR(transport_.wait(pending_, until));
    add_costs(began);
    replica_.give_back(message.floats());
    met = true;
    return {};
  };
  return receive_until([&] { return met; }, take, until).in(fmt::format("waiting for rank {} to average", partner));
}

Status GossipMeetings::answer() {
  const auto reply_to = [&](GossipLedger::Due due, Message message) {
    return due == GossipLedger::Due::kAnswer ? reply(std::move(message)) : Status();
  };
  SYNCOPATE_RETURN_IF_ERROR(
      receive_until([&] { return ledger_.all_active_have_ended(); }, reply_to, std::nullopt).in("waiting for offers"));
  return transport_.wait(pending_, deadline());
}

Status GossipMeetings::reply(Message offer) {
  const int partner = offer.from();
  const TraceSpan span(options_.tracer, traced(partner));
  const TimePoint began = clock_.now(), until = deadline();
  // The last answer may still be on its way.
  SYNCOPATE_RETURN_IF_ERROR(transport_.wait(pending_, until).in("waiting for the last answer to be taken"));
  replica_.average_with(offer.floats(), answer_);
  offer = Message();
  SYNCOPATE_RETURN_IF_ERROR(
      send(partner, ledger_.answer_to(partner), answer_, until).in(fmt::format("answering rank {}", partner)));
  add_costs(began);
  return {};
}

Status GossipMeetings::receive_until(const std::function<bool()>& done,
                                     const std::function<Status(GossipLedger::Due, Message)>& handle,
                                     std::optional<TimePoint> deadline) {
  while (!done()) {
    Result<Message> message = transport_.receive(deadline.value_or(clock_.now() + options_.timeout));
    if (!message.ok()) {
      if (!deadline && message.status().code() == Code::kDeadlineExceeded) continue;
      return message.status();
    }
    GossipHeader header;
    if (message->header().size() != sizeof(header)) {
      return Status::data_loss(fmt::format("rank {} sent a header of {} bytes where {} were due", message->from(),
                                           message->header().size(), sizeof(header)));
    }
    std::memcpy(&header, message->header().data(), sizeof(header));
    SYNCOPATE_ASSIGN_OR_RETURN(const GossipLedger::Due due,
                               ledger_.on_message(message->from(), header, message->payload().size()));
    if (due == GossipLedger::Due::kDrop) {
      const std::lock_guard lock(mutex_);
      ++dropped_;
      continue;
    }
    SYNCOPATE_RETURN_IF_ERROR(handle(due, std::move(*message)));
  }
  return {};
}

Status GossipMeetings::send(int peer, const GossipHeader& header, std::span<const float> payload, TimePoint deadline) {
  return transport_.send(peer, {reinterpret_cast<const char*>(&header), sizeof(header)}, std::as_bytes(payload),
                         payload.empty() ? nullptr : &pending_, deadline);
}

void GossipMeetings::add_costs(TimePoint began) {
  const TransportCounters before = std::exchange(counted_, transport_.counters());
  const std::lock_guard lock(mutex_);
  costs_.communication += clock_.now() - began;
  costs_.bytes_out += counted_.payload_bytes_out - before.payload_bytes_out;
  costs_.bytes_in += counted_.payload_bytes_in - before.payload_bytes_in;
}

}  // namespace syncopate::allreduce
