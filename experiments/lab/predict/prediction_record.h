// What predictions have in common as values: the job, and the figures of a plan. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "experiments/lab/predict/plan_name.h"
#include "experiments/lab/report/flat_rows.h"

namespace syncopate::experiments {

// Returns what a prediction was given: the model, a worker's step and whose it is, the links, the prices.
nlohmann::ordered_json job_json(const ScaledJob& job);

// Returns what stands in front on a page: what was given, a paragraph for each line of `title`, and the command.
std::string opening_html(const std::string& title, const std::string& command);

// Adds a plan's figures to a row: `hosts`, `step_ms`, `samples_per_second`, `efficiency` and
// `cost_per_million_samples`, null without prices.
void add_figures(const PlanFigures& figures, FlatRow& row);

}  // namespace syncopate::experiments
