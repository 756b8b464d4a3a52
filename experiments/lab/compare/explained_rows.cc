#include "experiments/lab/compare/explained_rows.h"

#include <fmt/format.h>

#include <optional>

#include "experiments/lab/report/comparison_figures.h"
#include "experiments/lab/why/explained_run.h"

namespace syncopate::experiments {
namespace {

StepParts parts_of(const ExplainedRun& run) {
  StepParts step{.ideal_ms = run.waterfall.ideal_ms,
                 .measured_ms = run.waterfall.measured_ms,
                 .parts = {},
                 .why = paragraph_of(run),
                 .samples_per_second = run.waterfall.measured_rate(),
                 .predicted = run.predicted_rate};
  for (const Part& part : run.waterfall.parts) step.parts.emplace_back(name_of(part.kind), part.ms);
  return step;
}

}  // namespace

void explain_rows(ComparisonReport& report) {
  for (ComparedRow& row : report.rows) {
    const std::optional<std::size_t> round = middle_round(row);
    if (!round) continue;
    const Result<ExplainedRun> run = explain_run(row.folders[*round]);
    if (run.ok()) {
      row.step = parts_of(*run);
    } else {
      report.notes.push_back(
          fmt::format("{}: where its time went is not known: {}", row.label, run.status().message()));
    }
  }
}

}  // namespace syncopate::experiments
