// A RunReport as JSON, for each repeat in summary.json and for each round in comparison.json (results/README.md
// explains every key). Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "experiments/lab/report/run_report.h"

namespace syncopate::experiments {

nlohmann::ordered_json report_json(const RunReport& report);

}  // namespace syncopate::experiments
