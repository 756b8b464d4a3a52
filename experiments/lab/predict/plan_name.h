// A plan's name, and its figures as cells of a table. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/predict/scaled_job.h"
#include "experiments/lab/predict/way_command.h"
#include "prediction/advice/candidate.h"

namespace syncopate::experiments {

// Returns "ring allreduce", "servers: 4, whole variables" or "a server on each host, even shards", for `hosts` hosts
// with workers.
std::string plan_name(const prediction::ExchangePlan& plan, int hosts);

// Returns the same of a way's kind, as in "asynchronous: servers: 4, even shards" "pipeline of 4 stages, 1f1b" or
// "layers in 2 parts".
std::string kind_name(const prediction::Way& way, int hosts);

// Returns "ring allreduce, buckets of 25 MB", or "asynchronous: servers: 4, even shards", and what is added to it.
// Weights that are averaged go in no buckets.
std::string way_name(const prediction::Way& way, const Addition& addition, int hosts);

// What a plan comes to at `step` seconds.
struct PlanFigures {
  int hosts = 0;  // all of them
  double step_seconds = 0;
  double samples_per_second = 0;                   // of the whole job
  double efficiency = 0;                           // against as many workers that exchange nothing
  std::optional<double> cost_per_million_samples;  // none without prices
};
PlanFigures figures_of(const ScaledJob& job, int workers, const prediction::ExchangePlan& plan, double step);

// The names of what plan_cells() returns; the cost stands there only if prices are given.
std::vector<std::string> plan_columns(const ScaledJob& job);

// The same figures as text.
std::vector<std::string> plan_cells(const ScaledJob& job, int workers, const prediction::ExchangePlan& plan,
                                    double step);

// Returns what a million samples cost at `step` seconds; prices must be given.
std::string cost_text(const ScaledJob& job, int workers, const prediction::ExchangePlan& plan, double step);

}  // namespace syncopate::experiments
