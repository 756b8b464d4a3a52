// The hosts of a run, and how workers and servers are placed on them. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/group_limits.h"
#include "common/status.h"

namespace syncopate::experiments {

inline constexpr int kMostSlots = kMostWorkers;  // of a host

struct HostSlots {
  std::string name;  // as the remote shell takes it ("node7", "me@10.0.0.7"), or "localhost"
  int slots = 1;     // the most workers that it may run; 0: servers alone

  // Returns whether the name is that of another host than the one where run_experiment runs.
  bool remote() const { return name != "localhost"; }
  bool operator==(const HostSlots&) const = default;
};

// Reads "A:2,B" as two slots on A and one on B, and "16x4" as 16 hosts of 4 slots that have no names but numbers, for a
// simulated cluster. Fails with invalid argument for anything else; the message is worded to follow "hosts".
Result<std::vector<HostSlots>> parse_hosts(std::string_view text);
// Returns what "16x4" is read as, of 16 hosts and 4 slots.
std::vector<HostSlots> numbered_hosts(std::size_t hosts, int slots);
// Returns whether the hosts are numbered, as those of "16x4" are.
bool are_numbered(const std::vector<HostSlots>& hosts);
// Reads one host per line: HOST, HOST:SLOTS or, as in mpirun's files, "HOST slots=SLOTS". A # begins a comment.
Result<std::vector<HostSlots>> parse_host_file(std::string_view text);
// Returns the text that parse_hosts() reads.
std::string to_text(const std::vector<HostSlots>& hosts);

int total_slots(const std::vector<HostSlots>& hosts);
// Returns the index of each worker's host. Workers fill the slots in order. Requires at least `workers` slots.
std::vector<std::size_t> hosts_of_workers(const std::vector<HostSlots>& hosts, int workers);

struct HostProcesses {
  int workers = 0;
  int servers = 0;
};
// Returns what runs on each host: workers as above, servers in turn, also where there are no slots. If there are
// colocated ones, each worker has one, and `servers` more are where there are no slots alone.
std::vector<HostProcesses> processes_by_host(const std::vector<HostSlots>& hosts, int workers, int servers,
                                             bool colocated);

}  // namespace syncopate::experiments
