#include "tests/support/quiet_wire.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/transport/forwarding_transport.h"
#include "common/transport/inproc_transport.h"

namespace syncopate::testing_support {
namespace {

Status nothing_comes() { return Status::cancelled("nothing can happen any more"); }

}  // namespace

class QuietWire::Endpoint final : public ForwardingTransport {
 public:
  Endpoint(QuietWire& wire, std::unique_ptr<Transport> inner) : ForwardingTransport(std::move(inner)), wire_(wire) {}

  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint deadline) override {
    const Status sent = wrapped().send(peer, header, payload, pending, deadline);
    wire_.tell(peer);
    return sent;
  }

  Result<Message> receive(TimePoint /*deadline*/) override {
    while (true) {
      const std::uint64_t seen = wire_.news_of(rank());
      Result<Message> message = wrapped().receive(SteadyClock().now());
      if (message.ok()) return told_when_let_go(std::move(*message));
      if (message.status().code() != Code::kDeadlineExceeded) return message;
      if (!wire_.wait_for_news(rank(), seen)) return nothing_comes();
    }
  }

  Status wait(const PendingSends& pending, TimePoint /*deadline*/) override {
    while (true) {
      const std::uint64_t seen = wire_.news_of(rank());
      if (pending.none()) return Status();
      if (!wire_.wait_for_news(rank(), seen)) return nothing_comes();
    }
  }

 private:
  class Lease final : public Message::Lease {
   public:
    Lease(QuietWire& wire, Message message) : wire_(wire), message_(std::move(message)) {}
    ~Lease() override {
      const int from = message_->from();
      message_.reset();
      wire_.tell(from);
    }

   private:
    QuietWire& wire_;
    std::optional<Message> message_;
  };

  Message told_when_let_go(Message message) {
    const int from = message.from();
    std::string header = message.header();
    const std::span<const std::byte> payload = message.payload();
    return Message(from, std::move(header), payload, std::make_unique<Lease>(wire_, std::move(message)));
  }

  QuietWire& wire_;
};

QuietWire::QuietWire(int size) : ranks_(static_cast<std::size_t>(size)) {
  InProcHub hub(size);
  for (int rank = 0; rank < size; ++rank) endpoints_.push_back(std::make_unique<Endpoint>(*this, hub.endpoint(rank)));
}

void QuietWire::stop(int rank) {
  const std::lock_guard lock(mutex_);
  rank_of(rank).stopped = true;
  end_if_quiet();
}

std::uint64_t QuietWire::news_of(int rank) {
  const std::lock_guard lock(mutex_);
  return rank_of(rank).news;
}

void QuietWire::tell(int rank) {
  const std::lock_guard lock(mutex_);
  ++rank_of(rank).news;
  rank_of(rank).waits = false;
  changed_.notify_all();
}

bool QuietWire::wait_for_news(int rank, std::uint64_t seen) {
  std::unique_lock lock(mutex_);
  Rank& own = rank_of(rank);
  if (own.news == seen) {
    own.waits = true;
    end_if_quiet();
    changed_.wait(lock, [&] { return own.news != seen || over_; });
    own.waits = false;
  }
  return own.news != seen;
}

void QuietWire::end_if_quiet() {
  const bool quiet = std::ranges::all_of(ranks_, [](const Rank& rank) { return rank.waits || rank.stopped; });
  if (!quiet) return;
  over_ = true;
  changed_.notify_all();
}

Status MortalTransport::live_on() {
  if (left_ > 0) {
    --left_;
    return Status();
  }
  if (!std::exchange(died_, true) && on_death_) on_death_();
  return Status::cancelled("dead");
}

Status MortalTransport::send(int peer, std::string_view header, std::span<const std::byte> payload,
                             PendingSends* pending, TimePoint deadline) {
  SYNCOPATE_RETURN_IF_ERROR(live_on());
  return inner_.send(peer, header, payload, pending, deadline);
}

Result<Message> MortalTransport::receive(TimePoint deadline) {
  SYNCOPATE_RETURN_IF_ERROR(live_on());
  return inner_.receive(deadline);
}

Status MortalTransport::wait(const PendingSends& pending, TimePoint deadline) {
  if (died_) return live_on();
  return inner_.wait(pending, deadline);
}

}  // namespace syncopate::testing_support
