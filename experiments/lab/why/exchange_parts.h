// ExchangeParts: what the exposed part of an exchange was spent on, by what each link and server had to carry. Pure.
//
// What one server took longer than the others comes first: for as long as it was the only one that workers still waited
// for, without what its share of the bytes explains, it is slow; as far as it has more bytes than others, and the full
// link is its own, its shard is hot. The rest is divided among the links, the servers' work, and delays, in proportion
// to what a step needs of each by itself, which may be under way at the same time. What none of them explains is left.
#pragma once

#include <optional>
#include <vector>

#include "experiments/lab/why/run_pace.h"

namespace syncopate::experiments {

// What the window's steps say, as means of a step.
struct ExchangeFigures {
  double exposed_ms = 0;        // to be divided
  double communication_ms = 0;  // in which an exchange was under way, without waits for workers
  double bytes_out = 0;         // of a worker, as recorded
  double bytes_in = 0;
  double rounds = 0;  // steps of all workers over workers, in the whole run, which servers' figures are of
  double step_ms = 0;
  std::vector<double> alone_ms = {};  // by server: for how long it was the only one waited for
};

// What a link or a server had to do in a step of all workers.
struct ServerLoad {
  int server = 0;
  double bytes_in = 0;
  double bytes_out = 0;
  double link_ms = 0;  // that its link needs, in and then out; 0 if the link's rate is not known
  double busy_ms = 0;
  double core_wait_ms = 0;
  double alone_ms = 0;
};

struct ExchangeParts {
  // These add up to exposed_ms.
  double hot_shard = 0;
  double slow_server = 0;
  double link = 0;
  double incast = 0;
  double servers = 0;
  double cores = 0;  // threads of servers without a core
  double delay = 0;
  double unexplained = 0;

  // What they were found by.
  // That a worker's link needs for a step: out and then in with servers, both at once without, and where processes
  // share a host's link; 0 if its rate is not known.
  double worker_link_ms = 0;
  double own_link_exposed_ms = 0;  // what of it is exposed where nothing else is full
  double worker_bytes = 0;  // of the direction with more; where they share one, what the busiest host's link carries
  double delay_ms = 0;
  std::vector<ServerLoad> of_servers = {};  // by rank; empty: there are none, or nothing of them is recorded
  std::optional<int> hot_server;            // that has the most bytes, if it has far more than the mean
  std::optional<int> slowest_server;        // if slow_server is above 0
  double hottest_over_mean = 1;             // bytes of the server with most, over the mean; or over what it is to have
};

ExchangeParts divide_exchange(const ExchangeFigures& figures, const RunPace& pace);

}  // namespace syncopate::experiments
