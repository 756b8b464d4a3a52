// FaultyTransport: a transport that misbehaves as told. Wraps another one and acts on what is sent through it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "common/random.h"
#include "common/transport/forwarding_transport.h"
#include "common/transport/link_faults.h"

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
  static constexpr int kMostOvertaking = 8;  // then it goes: its receiver keeps what came early
};

// What a run's faults make of messages, as long as they last: of those that are delayed or reordered, one in five is
// held back, for 20 or for 5 ms at least: until its sender then uses the endpoint.
FaultPlan delays_and_duplicates(const LinkFaults& faults, TimePoint now);
FaultPlan reordering(const LinkFaults& faults, TimePoint now);

class FaultyTransport final : public ForwardingTransport {
 public:
  FaultyTransport(std::unique_ptr<Transport> inner, FaultPlan plan)
      : ForwardingTransport(std::move(inner)), plan_(plan), random_(plan.seed) {}
  // Misbehaves as `plan` says at each time; its own seed does not matter.
  FaultyTransport(std::unique_ptr<Transport> inner, std::function<FaultPlan(TimePoint now)> plan, std::uint64_t seed)
      : ForwardingTransport(std::move(inner)), plan_now_(std::move(plan)), random_(seed) {}
  // Sends what is still held back, as far as there is room for it.
  ~FaultyTransport() override;

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
  static constexpr std::size_t kMostCopies = 16;

  struct Held {
    int peer;
    std::string header;
    std::span<const std::byte> payload;
    std::span<std::byte> copy;      // of the payload, if that is what `payload` is
    PendingSends::Counter pending;  // counts the message while it is held
    PendingSends inner;             // counts it afterwards
    TimePoint until;
    int overtaken = 0;  // by so many
    bool sent = false;
  };

  Status send_once(int peer, std::string_view header, std::span<const std::byte> payload, PendingSends* pending,
                   TimePoint deadline);
  // The second of two: a copy, so that nobody has to wait until it has been read, too. No more than kMostCopies are
  // under way; what comes then is not repeated.
  void repeat(int peer, std::string_view header, std::span<const std::byte> payload);
  std::span<std::byte> copy_of(std::span<const std::byte> payload);
  // Until when a message to `peer` must be held that is sent now; none: it need not be.
  std::optional<TimePoint> hold_until(int peer);
  // Hands on one that was held back, unless its peer has no room for it until `deadline`.
  void release(Held& held, TimePoint deadline);
  // What is due to `peer`, in its order.
  Status release_due(int peer, TimePoint deadline);
  // Those that were held back long enough. Returns when the next one is due.
  TimePoint release_held();

  const std::function<FaultPlan(TimePoint now)> plan_now_;  // null: the plan stays as it is
  FaultPlan plan_;
  Random random_;
  SteadyClock clock_;
  std::set<int> cut_;
  std::deque<Held> held_;
  std::size_t copies_ = 0;                   // under way
  std::vector<std::span<std::byte>> spare_;  // for copies
};

}  // namespace syncopate
