// CuttableTransport: a transport whose link can be partitioned for a while. Wraps another one, which carries the
// messages.
//
// While the link is partitioned, sent messages are held here, and received ones are not delivered; afterwards all
// continue in order. Nothing is lost, as in a network whose cable is pulled for a moment, since its ends resend what
// was not confirmed. A wait that exceeds its deadline fails, as it would there.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "common/threads.h"
#include "common/transport/forwarding_transport.h"
#include "common/transport/link_faults.h"

namespace syncopate {

class CuttableTransport final : public ForwardingTransport {
 public:
  CuttableTransport(std::unique_ptr<Transport> inner, std::shared_ptr<const LinkFaults> faults,
                    const Clock& clock = os_threads().clock())
      : ForwardingTransport(std::move(inner)), faults_(std::move(faults)), clock_(clock) {}

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
    PendingSends pending;  // shares the sender's count, which includes the message meanwhile
    bool counts = false;   // whether it does
  };

  TimePoint cut_until() const { return faults_->until(LinkFault::kCut); }
  bool is_cut() const { return clock_.now() < cut_until(); }
  // Sends the held messages, unless the link is partitioned.
  Status send_held(TimePoint deadline);
  // While the link is partitioned, and until `deadline`: receives messages without delivering them. Returns ok when the
  // link is whole again.
  Status sit_out(TimePoint deadline);

  std::shared_ptr<const LinkFaults> faults_;
  const Clock& clock_;
  std::deque<Held> held_;
  std::deque<Result<Message>> come_;  // received messages and losses of peers
};

}  // namespace syncopate
