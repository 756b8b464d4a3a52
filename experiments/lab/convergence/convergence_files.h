// Writes published claims about convergence beside runs of ours as files: a page for a browser and values for programs.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/lab/convergence/convergence_table.h"
#include "experiments/lab/report/chart.h"

namespace syncopate::experiments {

// Accuracies over the table's x, published as points, ours as lines with all seeds between
// the ends of their bars. Pure.
Chart convergence_chart(const ReproducedConvergence& reproduced);

// Returns convergence.html: for each table what it is, a chart, its rows, and how to run each alone. `notes` are
// sentences above all tables. Pure.
std::string convergence_html(const std::vector<ReproducedConvergence>& tables, const std::vector<std::string>& notes);

// Returns convergence.csv: a row for each seed of each setting; accuracies are parts of one. Pure.
std::string convergence_csv(const std::vector<ReproducedConvergence>& tables);

// Writes both into `folder`, which is created unless it exists, in place of older ones. Fails with resource exhausted,
// the path and the system's reason.
Status write_convergence(const std::vector<ReproducedConvergence>& tables, const std::vector<std::string>& notes,
                         const std::string& folder);

}  // namespace syncopate::experiments
