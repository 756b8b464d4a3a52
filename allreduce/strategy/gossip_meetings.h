// GossipMeetings: carries out a worker's meetings with others under asynchronous gossip, beside the thread that
// computes: a thread of its own asks or answers, as the worker's role is (gossip_roles.h), and averages the replica
// with theirs. Holds no decision: what is due stands in the ledger.
//
// An active worker's thread sends the weights that are lent to it, and waits for the mean. A passive one's waits for
// offers, whoever they come from, and answers each at once, also while its worker computes, straggles, or trains no
// more.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "allreduce/strategy/gossip_roles.h"
#include "allreduce/strategy/shared_replica.h"
#include "common/clock.h"
#include "common/status.h"
#include "common/thread_failure.h"
#include "common/transport/transport.h"

namespace syncopate::allreduce {

// What meetings have cost since it was last asked.
struct MeetingCosts {
  Duration communication{};    // an active worker: from the offer to the mean; a passive one: averages and answers
  std::int64_t bytes_out = 0;  // payload
  std::int64_t bytes_in = 0;
};

class GossipMeetings {
 public:
  struct Options {
    std::uint64_t seed = 0;                       // partners are drawn from it
    Duration timeout = std::chrono::seconds(30);  // of every wait for an answer, or for room to send
  };

  // All outlive the object, and nothing else uses the transport before finish() has begun its work with it or after
  // start(). The replica's weights lie in the transport's memory.
  GossipMeetings(Transport& transport, SharedReplica& replica, std::size_t elements, const Options& options,
                 const Clock& clock);
  // Where meetings are still under way, it interrupts the transport.
  ~GossipMeetings();

  // Begins. Gets memory of the transport for answers.
  Status start();

  // This worker trains no more. Returns when no other does, so that all have the weights that they will leave with:
  // that lasts as long as the slowest worker trains, and ends before that alone by a failure: a lost peer, an
  // interrupt, or what the thread has met with. The calling thread then has the transport.
  Status finish();

  // The first failure of the thread, which has then ended. Throws what it has thrown. Any thread.
  Status status() const;
  MeetingCosts take_costs();
  // Messages that came again, and were dropped.
  std::int64_t dropped() const;

 private:
  void run();
  Status ask();     // an active worker's thread
  Status answer();  // a passive worker's
  Status meet();
  Status reply(Message offer);
  // Handles what comes until `done`; the waits end at `deadline`, or, without one, by a failure alone.
  Status receive_until(const std::function<bool()>& done,
                       const std::function<Status(GossipLedger::Due due, Message message)>& handle,
                       std::optional<TimePoint> deadline);
  Status send(int peer, const GossipHeader& header, std::span<const float> payload, TimePoint deadline);
  // Of a meeting that began then and has ended.
  void add_costs(TimePoint began);
  bool is_active() const { return allreduce::is_active(transport_.rank()); }
  TimePoint deadline() const { return clock_.now() + options_.timeout; }

  Transport& transport_;
  SharedReplica& replica_;
  const std::size_t elements_;
  const Options options_;
  const Clock& clock_;
  // Of the thread that has the transport.
  GossipLedger ledger_;
  std::span<float> answer_;    // a passive worker's: the last mean
  PendingSends pending_;       // of the offer or the answer
  std::int64_t meetings_ = 0;  // that an active worker has asked for
  TransportCounters counted_;  // what the costs so far are of

  mutable std::mutex mutex_;  // of the next three
  Status status_;
  MeetingCosts costs_;
  std::int64_t dropped_ = 0;

  ThreadFailure failure_;
  std::jthread thread_;
};

}  // namespace syncopate::allreduce
