// HostReport: what a host reports when it is asked before a run: its machine, its program, its GPUs. It is sent as one
// line of JSON.
#pragma once

#include <string>
#include <string_view>

#include "common/status.h"
#include "experiments/cluster/host/environment.h"
#include "experiments/cluster/plan/placement.h"

namespace syncopate::experiments {

struct HostReport {
  std::string fingerprint;  // source_fingerprint() of the program there
  std::string interface;    // the interface by which it reaches the coordinator; empty if none was asked for
  Environment environment;
  Machine machine;
};

// Returns this host's report. Loads NVIDIA's driver, if there is one, if `with_gpus`. `towards` is the coordinator's
// address.
HostReport this_host(bool with_gpus, const std::string& towards);
// Returns what place() must know of this machine. Loads NVIDIA's driver, if there is one.
Machine this_machine();

std::string to_json_line(const HostReport& report);
// Finds the report in all that a host has printed: the last line that is one, since its shell may print a greeting
// first. Fails with data loss if there is none.
Result<HostReport> parse_host_report(std::string_view printed);

}  // namespace syncopate::experiments
