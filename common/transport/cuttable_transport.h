// CuttableTransport: a transport whose link can be cut for a while. Wraps another one, which carries the messages.
//
// While the link is cut, what is sent is kept back here, and what has come is not handed over; afterwards all goes on
// in its order. Nothing is lost: so does a network whose cable is pulled for a moment, since its ends send again what
// was not confirmed. Who waits longer than its deadline gives up, as it would there.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "common/transport/forwarding_transport.h"
#include "common/transport/link_faults.h"

namespace syncopate {

class CuttableTransport final : public ForwardingTransport {
 public:
  CuttableTransport(std::unique_ptr<Transport> inner, std::shared_ptr<const LinkFaults> faults)
      : ForwardingTransport(std::move(inner)), faults_(std::move(faults)) {}

  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint deadline) override;
  Result<Message> receive(TimePoint deadline) override;
  Status wait(const PendingSends& pending, TimePoint deadline) override;
  void progress() override;

 private:
  struct Held {
    int peer = 0;
    std::string header;
    std::span<const std::byte> payload;
    PendingSends pending;  // shares the sender's count, in which the message stands meanwhile
    bool counts = false;   // whether it does
  };

  TimePoint cut_until() const { return faults_->until(LinkFault::kCut); }
  bool is_cut() const { return clock_.now() < cut_until(); }
  // Sends what was kept back, unless the link is cut.
  Status send_held(TimePoint deadline);
  // While the link is cut, and until `deadline`: takes over what comes, without handing it out. Ok when the link is
  // whole again.
  Status sit_out(TimePoint deadline);

  std::shared_ptr<const LinkFaults> faults_;
  SteadyClock clock_;
  std::deque<Held> held_;
  std::deque<Result<Message>> come_;  // messages and losses of peers
};

}  // namespace syncopate
