// RankHost: what the ranks of a test live in, and what they send over: threads and a wire of this machine, or actors
// and the wire of a simulated world.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/threads.h"
#include "common/transport/transport.h"

namespace syncopate::testing_support {

class RankHost {
 public:
  virtual ~RankHost() = default;

  // For threads beside the ranks, and for the clock of all deadlines.
  virtual Threads& threads() = 0;
  // One endpoint a rank, connected. The test's own thread may call them, too. They must not outlive the host.
  virtual std::vector<std::unique_ptr<Transport>> connect(int size) = 0;
  // Runs body(rank) for 0 .. size-1, each on its own thread, and returns when all have returned.
  virtual void run_ranks(int size, const std::function<void(int rank)>& body) = 0;
};

// Over a wire of connect_group() (tests/support/cluster.h).
std::unique_ptr<RankHost> real_rank_host(const std::string& wire, int connections = 1, bool encrypted = false);

// Each rank on a host of its own, with a link of 10 Gb/s. What the test's own thread calls, an actor does in its place;
// virtual time passes only meanwhile. A thread that the test has started must have ended before its handle goes.
std::unique_ptr<RankHost> simulated_rank_host();

}  // namespace syncopate::testing_support
