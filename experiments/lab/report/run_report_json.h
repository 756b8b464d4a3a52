// A RunReport as it stands in summary.json, for each repeat, and in comparison.json, for each round
// (results/README.md explains every key). Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "experiments/lab/report/run_report.h"

namespace syncopate::experiments {

nlohmann::ordered_json report_json(const RunReport& report);

}  // namespace syncopate::experiments
