// FaultyTransport: a transport that misbehaves according to a plan. Wraps another one and affects what is sent through
// it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "common/random.h"
#include "common/threads.h"
#include "common/transport/forwarding_transport.h"
#include "common/transport/link_faults.h"

namespace syncopate {

struct FaultPlan {
  std::uint64_t seed = 1;
  double drop = 0;       // probability that a message is never delivered
  double duplicate = 0;  // probability that it is delivered twice; the second one may arrive any time later
  double delay = 0;      // probability that it is held for `delayed_by`
  Duration delayed_by = std::chrono::milliseconds(5);
  // What happens to the messages after a delayed one, to the same peer. False: they wait for it, so that only messages
  // to different peers change their order. True: they overtake it, which no wire of ours does.
  bool overtakes = false;
  static constexpr int kMostOvertaking = 8;  // then the message is sent: its receiver keeps what came early
};

// The effect of a run's faults on messages, as long as they last. Delays and reordering hold one in five messages for
// at least 20 or 5 ms, until the sender next uses the endpoint; duplication repeats every message.
FaultPlan delays_and_duplicates(const LinkFaults& faults, TimePoint now);
FaultPlan reordering(const LinkFaults& faults, TimePoint now);

class FaultyTransport final : public ForwardingTransport {
 public:
  FaultyTransport(std::unique_ptr<Transport> inner, FaultPlan plan, const Clock& clock = os_threads().clock())
      : ForwardingTransport(std::move(inner)), plan_(plan), random_(plan.seed), clock_(clock) {}
  // Misbehaves according to the result of `plan` at each time; that plan's own seed is not used.
  FaultyTransport(std::unique_ptr<Transport> inner, std::function<FaultPlan(TimePoint now)> plan, std::uint64_t seed,
                  const Clock& clock = os_threads().clock())
      : ForwardingTransport(std::move(inner)), plan_now_(std::move(plan)), random_(seed), clock_(clock) {}
  // Sends what is still held, as far as there is room for it.
  ~FaultyTransport() override;

  // From now on nothing reaches `peer`, and nothing from it is received: both are dropped silently, as by a cut cable.
  void cut(int peer) { cut_.insert(peer); }
  void mend(int peer) { cut_.erase(peer); }

  Status send(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
              TimePoint deadline) override;
  Result<Message> receive(TimePoint deadline) override;
  Status wait(const PendingSends& pending, TimePoint deadline) override;
  void progress() override;

 private:
  static constexpr std::size_t kMostCopies = 16;

  struct Held {
    int peer;
    std::string header;
    std::span<const std::byte> payload;
    std::span<std::byte> copy;      // of the payload, if `payload` refers to it
    PendingSends::Counter pending;  // counts the message while it is held
    PendingSends inner;             // counts it afterwards
    TimePoint until;
    int overtaken = 0;  // the number of messages that overtook it
    bool sent = false;
  };

  Status send_once(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
                   TimePoint deadline);
  // Sends the message a second time, as a copy, so that nobody has to wait until it has been read, too. At most
  // kMostCopies are in flight; further messages are not repeated.
  void repeat(int peer, std::string_view header, std::span<const std::byte> payload);
  std::span<std::byte> copy_of(std::span<const std::byte> payload);
  // Returns until when a message to `peer` that is sent now must be held; none if it need not be held.
  std::optional<TimePoint> hold_until(int peer);
  // Sends a held message, unless its peer has no room for it until `deadline`.
  void release(Held& held, TimePoint deadline);
  // Sends what is due to `peer`, in order.
  Status release_due(int peer, TimePoint deadline);
  // Sends the messages that were held long enough. Returns when the next one is due.
  TimePoint release_held();

  const std::function<FaultPlan(TimePoint now)> plan_now_;  // null: the plan does not change
  FaultPlan plan_;
  Random random_;
  const Clock& clock_;
  std::set<int> cut_;
  std::deque<Held> held_;
  std::size_t copies_ = 0;                   // in flight
  std::vector<std::span<std::byte>> spare_;  // for copies
};

}  // namespace syncopate
