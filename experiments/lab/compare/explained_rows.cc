#include "experiments/lab/compare/explained_rows.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "experiments/lab/report/comparison_figures.h"
#include "experiments/lab/why/explained_run.h"
#include "experiments/lab/why/training_pieces.h"

namespace syncopate::experiments {
namespace {

constexpr std::size_t kMostPiecesOfARow = 40;  // since a page may have many rows

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

Status explain(ComparedRow& row, const std::string& folder) {
  SYNCOPATE_ASSIGN_OR_RETURN(const RecordedRun recorded, read_recorded_run(folder));
  if (!is_profile(recorded.config)) {
    const std::size_t pieces = pieces_of(recorded.steps.count(), recorded.config.workers, kMostPiecesOfARow);
    row.training = training_pieces(recorded.steps, pieces);
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const ExplainedRun run, explain(recorded));
  row.step = parts_of(run);
  return {};
}

bool has_steps(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::exists(folder + "/steps.csv", ignored);
}

}  // namespace

void explain_rows(ComparisonReport& report) {
  for (ComparedRow& row : report.rows) {
    const std::optional<std::size_t> round = middle_round(row);
    if (!round) continue;
    if (const Status status = explain(row, row.folders[*round]); !status.ok()) {
      report.notes.push_back(fmt::format("{}: where its time went is not known: {}", row.label, status.message()));
    }
  }
}

void explain_kept_rows(ComparisonReport& report) {
  for (ComparedRow& row : report.rows) {
    const std::optional<std::size_t> round = middle_round(row);
    if (!round || !has_steps(row.folders[*round])) continue;
    ComparedRow explained = row;
    if (explain(explained, row.folders[*round]).ok()) row = std::move(explained);
  }
}

}  // namespace syncopate::experiments
