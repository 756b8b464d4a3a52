// FaultyTransport: a transport that misbehaves as told, for tests. Wraps another one and acts on what is sent through
// it.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>

#include "common/random.h"
#include "common/transport/forwarding_transport.h"

namespace syncopate {

struct FaultPlan {
  std::uint64_t seed = 1;
  double drop = 0;       // probability that a message is never delivered
  double duplicate = 0;  // probability that it is delivered twice; the second one may come as late as any
  double delay = 0;      // probability that it is held back until `delayed_by` later
  Duration delayed_by = std::chrono::milliseconds(5);
  // What follows a delayed message to the same peer: waits behind it, so that only messages to different peers change
  // their order; or overtakes it, which no wire of ours does.
  bool overtakes = false;
};

class FaultyTransport final : public ForwardingTransport {
 public:
  FaultyTransport(std::unique_ptr<Transport> inner, FaultPlan plan)
      : ForwardingTransport(std::move(inner)), plan_(plan), random_(plan.seed) {}

  // From now on nothing reaches `peer`, and nothing from it is received: both are dropped in silence, as by a cut
  // cable.
  void cut(int peer) { cut_.insert(peer); }
  void mend(int peer) { cut_.erase(peer); }

  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint deadline) override;
  Result<Message> receive(TimePoint deadline) override;
  Status wait(const PendingSends& pending, TimePoint deadline) override;
  void progress() override;

 private:
  struct Held {
    int peer;
    std::string header;
    std::span<const std::byte> payload;
    PendingSends::Counter pending;  // counts the message while it is held
    PendingSends inner;             // counts it afterwards
    TimePoint until;
    bool sent = false;
  };

  Status send_once(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
                   TimePoint deadline);
  // Until when a message to `peer` must be held that is sent now; none: it need not be.
  std::optional<TimePoint> hold_until(int peer);
  // Sends what was held back long enough. Returns when the next one is due.
  TimePoint release_held();

  const FaultPlan plan_;
  Random random_;
  SteadyClock clock_;
  std::set<int> cut_;
  std::deque<Held> held_;
};

}  // namespace syncopate
