// Examination: what a doctor has found out about hosts and about each pair of them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "experiments/cluster/doctor/pair_measurement.h"
#include "experiments/cluster/host/host_limits.h"
#include "experiments/cluster/host/host_report.h"
#include "experiments/config/remote_shell.h"

namespace syncopate::experiments {

struct ExaminedHost {
  std::string name;
  std::string failure;  // why it could not be examined; what follows is then empty
  HostReport report;
  HostLimits limits;
  double clock_ms = 0;         // how far its wall clock is ahead of ours
  double clock_within_ms = 0;  // by how much that may be wrong
};

struct ExaminedPair {
  std::size_t one = 0, other = 0;  // of the hosts
  std::string failure;             // why there are no figures
  double latency_us = 0;           // a small message's way
  double there = 0, back = 0;      // bytes a second, from one to other and from other to one
};

struct Examination {
  std::vector<ExaminedHost> hosts;
  std::vector<ExaminedPair> pairs;  // of hosts that could be examined
};

struct ExaminationOptions {
  RemoteShell shell;
  std::vector<std::string> hosts;  // by name; "localhost" is this one
  std::string towards;             // this host's address, where the others reach it; of this host alone, any
  bool with_gpus = false;
  Duration patience{};                                // for a host that says nothing, and for a pair
  Duration sending = std::chrono::milliseconds(250);  // how long each of a pair sends
};

// Returns rounds of pairs, in which each pair of `hosts` stands once and no host twice in a round, as in a tournament.
std::vector<std::vector<std::pair<std::size_t, std::size_t>>> rounds_of_pairs(std::size_t hosts);

// Starts an agent on each host, all at once, and measures the pairs of a round at once. Fails with internal if there
// can be no keys; what is wrong with a host or a pair stands in the result. `shows` is called with what it does next.
Result<Examination> examine(const ExaminationOptions& options, const std::function<void(const std::string&)>& shows);

}  // namespace syncopate::experiments
