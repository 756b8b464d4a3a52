// Measures what two hosts can send each other, by messages over the transport that a run between hosts has.
#pragma once

#include <string>

#include "common/clock.h"
#include "common/rendezvous.h"
#include "common/status.h"
#include "common/transport/run_keys.h"

namespace syncopate::experiments {

// What one of the two has found.
struct PairFigures {
  double latency_us = 0;        // a message's way, half of the median of there and back
  double bytes_per_second = 0;  // that this one has sent to the other
};

struct PairOptions {
  int rank = 0;         // 0 or 1
  std::string group;    // the same in both, and no other pair's
  std::string address;  // where this one listens
  RunKeys keys;
  Duration sending{};  // how long each sends as fast as it can
};

// Connects the two, lets small messages go there and back, then large ones each way, encrypted as in a run. Returns the
// same latency in both. Fails as the transport does; the message says which part of it failed: "connecting", "small
// messages" or "large messages".
Result<PairFigures> measure_pair(const PairOptions& options, Rendezvous& rendezvous, TimePoint deadline);

}  // namespace syncopate::experiments
