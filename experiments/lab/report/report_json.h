// A run's figures as they stand among the members of summary.json and of comparison.json, written and read by one
// description. results/README.md explains every key. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "experiments/lab/report/run_report.h"

namespace syncopate::experiments {

class JsonMembers;

nlohmann::ordered_json report_json(const RunReport& report);

// Reads what that has written. What is wrong in it is the members' error.
RunReport read_report(const JsonMembers& members);

}  // namespace syncopate::experiments
