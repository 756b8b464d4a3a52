// HostReport: what a host says of itself when it is asked before a run: its machine, its program, its GPUs. It travels
// as one line of JSON.
#pragma once

#include <string>
#include <string_view>

#include "common/status.h"
#include "experiments/cluster/host/environment.h"
#include "experiments/cluster/plan/placement.h"

namespace syncopate::experiments {

struct HostReport {
  std::string fingerprint;  // source_fingerprint() of the program there
  std::string interface;    // by which it reaches the coordinator; empty where none was asked for
  Environment environment;
  Machine machine;
};

// This host's. Loads NVIDIA's driver, where there is one, if `with_gpus`. `towards`: the coordinator's address.
HostReport this_host(bool with_gpus, const std::string& towards);
// What place() must know of this machine. Loads NVIDIA's driver, where there is one.
Machine this_machine();

std::string to_json_line(const HostReport& report);
// Of all that a host has printed, since its shell may greet first: the last line that is a report. Data loss where
// there is none.
Result<HostReport> parse_host_report(std::string_view printed);

}  // namespace syncopate::experiments
