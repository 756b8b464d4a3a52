// CommunicationOutcome: what an operation that another thread carries out has come to, until the compute thread counts
// it. Written by the one, and read by the other once the operation's ticket is done (communication_thread.h).
#pragma once

#include <utility>

#include "allreduce/collective.h"
#include "common/clock.h"
#include "common/status.h"
#include "common/sync_strategy.h"

namespace syncopate::allreduce {

struct CommunicationOutcome {
  Status status = {};
  Duration time{};
  TransportCounters sent = {};

  // Adds time and bytes to the figures of a step, once however often it is called. Returns the status.
  Status count(SyncStats& stats) {
    const TransportCounters counted = std::exchange(sent, {});
    stats.communication += std::exchange(time, Duration::zero());
    stats.bytes_out += counted.payload_bytes_out;
    stats.bytes_in += counted.payload_bytes_in;
    return status;
  }
};

// Carries `work` out, whose bytes `wire` counts: a collective, or whatever has counters().
template <typename Wire, typename Work>
CommunicationOutcome outcome_of(const Wire& wire, const Clock& clock, const Work& work) {
  const TimePoint begin = clock.now();
  const TransportCounters before = wire.counters();
  CommunicationOutcome outcome{.status = work()};
  outcome.time = clock.now() - begin;
  outcome.sent = wire.counters() - before;
  return outcome;
}

}  // namespace syncopate::allreduce
