#include "experiments/lab/compare/explained_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "experiments/lab/why/explained_run.h"

namespace syncopate::experiments {
namespace {

// Returns the round of median throughput, the lower of two in the middle; none if none has completed.
std::optional<std::size_t> median_round(const ComparedRow& row) {
  std::vector<std::size_t> finished;
  for (std::size_t round = 0; round < row.rounds.size(); ++round) {
    if (row.rounds[round] && !row.folders[round].empty()) finished.push_back(round);
  }
  if (finished.empty()) return std::nullopt;
  std::ranges::sort(finished, {}, [&](std::size_t round) { return row.rounds[round]->samples_per_second; });
  return finished[(finished.size() - 1) / 2];
}

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
    const std::optional<std::size_t> round = median_round(row);
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
