// The hosts that a person asks for, and how workers and servers are laid over them. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace syncopate::experiments {

struct HostSlots {
  std::string name;  // as the remote shell takes it ("node7", "me@10.0.0.7"), or "localhost"
  int slots = 1;     // workers that it may have

  // It is another host than the one where run_experiment runs, as far as the name says.
  bool remote() const { return name != "localhost"; }
  bool operator==(const HostSlots&) const = default;
};

// "A:2,B" is two slots on A and one on B. Invalid argument, in words that follow "hosts", where it is anything else.
Result<std::vector<HostSlots>> parse_hosts(std::string_view text);
// A host a line: HOST, HOST:SLOTS or, as mpirun's files have it, "HOST slots=SLOTS"; # begins a comment.
Result<std::vector<HostSlots>> parse_host_file(std::string_view text);
// What parse_hosts() reads.
std::string to_text(const std::vector<HostSlots>& hosts);

int total_slots(const std::vector<HostSlots>& hosts);
// The host of each worker, as an index: they fill the slots in order. There must be slots enough.
std::vector<std::size_t> hosts_of_workers(const std::vector<HostSlots>& hosts, int workers);

}  // namespace syncopate::experiments
