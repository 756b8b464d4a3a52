// GossipMeetings: carries out a worker's meetings with others under asynchronous gossip. A thread of its own, beside
// the compute thread, asks or responds, depending on the worker's role (gossip_roles.h), and averages the replica with
// theirs. It makes no decisions: the ledger says what is due.
//
// An active worker's thread sends the weights that are on loan to it, and waits for the mean. A passive worker's thread
// waits for offers from any rank, and responds to each at once, also while its worker computes, straggles, or trains no
// more.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "allreduce/strategy/gossip_roles.h"
#include "allreduce/strategy/shared_replica.h"
#include "common/clock.h"
#include "common/status.h"
#include "common/thread_failure.h"
#include "common/threads.h"
#include "common/trace/tracer.h"
#include "common/transport/transport.h"

namespace syncopate::allreduce {

// The costs of meetings since the last call.
struct MeetingCosts {
  Duration communication{};    // active: from the offer to the mean; passive: averages and responses
  std::int64_t bytes_out = 0;  // payload
  std::int64_t bytes_in = 0;
};

class GossipMeetings {
 public:
  struct Options {
    std::uint64_t seed = 0;                       // seeds the choice of partners
    Duration timeout = std::chrono::seconds(30);  // for each wait for a response, or for room to send
    Threads* threads = &os_threads();             // has the thread; must outlive the meetings
    Tracer* tracer = nullptr;                     // records meetings, if set; must outlive them
  };

  // All arguments must outlive this object. Nothing else may use the transport between start() and finish(). The
  // replica's weights must lie in the transport's memory.
  GossipMeetings(Transport& transport, SharedReplica& replica, std::size_t elements, const Options& options,
                 const Clock& clock);
  // Interrupts the transport if meetings are still under way.
  ~GossipMeetings();

  // Begins the meetings. Allocates memory of the transport for responses.
  Status start();

  // This worker trains no more. Returns when no other worker trains either, so that all have the weights that they will
  // leave with. That takes as long as the slowest worker trains; it ends earlier only by a failure: a lost peer, an
  // interrupt, or a failure of the thread. The calling thread may use the transport afterwards.
  Status finish();

  // The first failure of the thread, which has then ended. Rethrows what the thread has thrown. Any thread.
  Status status() const;
  MeetingCosts take_costs();
  // The number of repeated messages that were dropped.
  std::int64_t dropped() const;

 private:
  void run();
  Status ask();     // an active worker's thread
  Status answer();  // a passive worker's
  Status meet();
  Status reply(Message offer);
  // Handles what arrives until `done` returns true. Waits end at `deadline`; without one they end only by a failure.
  Status receive_until(const std::function<bool()>& done,
                       const std::function<Status(GossipLedger::Due due, Message message)>& handle,
                       std::optional<TimePoint> deadline);
  Status send(int peer, const GossipHeader& header, std::span<const float> payload, TimePoint deadline);
  // Returns the event of a meeting with this rank. Its number is no step: the thread that meets knows none.
  TraceEvent traced(int partner) const {
    return {.kind = TraceKind::kMeeting,
            .peer = partner,
            .number = -1,
            .bytes = static_cast<std::int64_t>(elements_ * sizeof(float))};
  }
  // Adds the costs of a meeting that began then and has ended.
  void add_costs(TimePoint began);
  bool is_active() const { return allreduce::is_active(transport_.rank()); }
  TimePoint deadline() const { return clock_.now() + options_.timeout; }

  Transport& transport_;
  SharedReplica& replica_;
  const std::size_t elements_;
  const Options options_;
  const Clock& clock_;
  // Used by the thread that has the transport:
  GossipLedger ledger_;
  std::span<float> answer_;    // a passive worker's: the last mean
  PendingSends pending_;       // of the offer or the response
  std::int64_t meetings_ = 0;  // that an active worker has asked for
  TransportCounters counted_;  // the transport's counters at the last costs

  mutable std::mutex mutex_;  // guards the next three; nothing waits while it is locked
  Status status_;
  MeetingCosts costs_;
  std::int64_t dropped_ = 0;

  ThreadFailure failure_;
  std::unique_ptr<Threads::Handle> thread_;  // last: it works on all of the above
};

}  // namespace syncopate::allreduce
