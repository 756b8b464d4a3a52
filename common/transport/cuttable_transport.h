// CuttableTransport: a transport whose link can be cut for a while. Wraps another one, which carries the messages.
//
// While the link is cut, what is sent is kept back here, and what has come is not handed over; afterwards all goes on
// in its order. Nothing is lost: so does a network whose cable is pulled for a moment, since its ends send again what
// was not confirmed. Who waits longer than its deadline gives up, as it would there.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "common/transport/link_cut.h"
#include "common/transport/transport.h"

namespace syncopate {

class CuttableTransport final : public Transport {
 public:
  CuttableTransport(std::unique_ptr<Transport> inner, std::shared_ptr<const LinkCut> link)
      : inner_(std::move(inner)), link_(std::move(link)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  const char* name() const override { return inner_->name(); }
  Result<std::span<std::byte>> allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint deadline) override;
  Result<Message> receive(TimePoint deadline) override;
  Status wait(const PendingSends& pending, TimePoint deadline) override;
  void progress() override;
  void interrupt() override { inner_->interrupt(); }
  TransportCounters counters() const override { return inner_->counters(); }

 private:
  struct Held {
    int peer = 0;
    std::string header;
    std::span<const std::byte> payload;
    PendingSends pending;  // shares the sender's count, in which the message stands meanwhile
    bool counts = false;   // whether it does
  };

  bool is_cut() const { return clock_.now() < link_->until(); }
  // Sends what was kept back, unless the link is cut.
  Status send_held(TimePoint deadline);
  // While the link is cut, and until `deadline`: takes over what comes, without handing it out. Ok when the link is
  // whole again.
  Status sit_out(TimePoint deadline);

  std::unique_ptr<Transport> inner_;  // outlives the messages that it has given
  std::shared_ptr<const LinkCut> link_;
  SteadyClock clock_;
  std::deque<Held> held_;
  std::deque<Result<Message>> come_;  // messages and losses of peers
};

}  // namespace syncopate
