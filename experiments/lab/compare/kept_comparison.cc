#include "experiments/lab/compare/kept_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

#include "common/os/regular_file.h"
#include "experiments/lab/compare/explained_rows.h"
#include "experiments/lab/compare/finished_runs.h"
#include "experiments/lab/compare/kept_runs.h"
#include "experiments/lab/report/comparison_reading.h"

namespace syncopate::experiments {
namespace {

constexpr std::uint64_t kMostComparisonBytes = 256 << 20;

bool lies_there(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// Lets rows name the folders of their runs where these lie now: `folder` may have been moved.
void find_runs(const std::string& folder, ComparisonReport& report) {
  for (ComparedRow& row : report.rows) {
    for (std::string& run : row.folders) {
      if (run.empty() || lies_there(run)) continue;
      const std::string moved = (std::filesystem::path(folder) / std::filesystem::path(run).filename()).string();
      if (lies_there(moved)) run = moved;
    }
  }
}

// Returns the folders of completed runs, in the order of their names, by numbers where these have such.
std::vector<std::string> completed_runs(const std::string& folder) {
  std::vector<std::string> runs;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string run = entry.path().string();
    const Result<JobResult> result = lies_there(run + "/summary.json") ? result_by_files(run) : Status::not_found(run);
    if (result.ok() && result->exit == ExitCode::kSuccess) runs.push_back(run);
  }
  std::ranges::sort(runs,
                    [](const std::string& a, const std::string& b) { return strverscmp(a.c_str(), b.c_str()) < 0; });
  return runs;
}

Result<ComparisonReport> read_cut_off(const std::string& folder) {
  const std::vector<std::string> runs = completed_runs(folder);
  if (runs.empty()) {
    return Status::not_found(fmt::format(
        "{}: none of its runs was completed; the same command with --output={} goes on from here", folder, folder));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(ComparisonReport report, read_finished_runs(runs));
  report.notes.push_back(fmt::format(
      "the comparison was cut off in its first round: these are the {} runs that it had completed; the same "
      "command with --output={} goes on from there",
      runs.size(), folder));
  explain_rows(report);
  return report;
}

}  // namespace

bool is_of_comparison(const std::string& folder) {
  return lies_there(folder + "/comparison.json") || lies_there(folder + kComparisonMark);
}

Result<ComparisonReport> read_kept_comparison(const std::string& folder) {
  const std::string path = folder + "/comparison.json";
  if (!lies_there(path)) return read_cut_off(folder);
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string text, read_regular_file(path, kMostComparisonBytes));
  Result<ComparisonReport> report = read_comparison(text);
  if (!report.ok()) return Status::data_loss(fmt::format("{}: {}", path, report.status().message()));
  find_runs(folder, *report);
  explain_kept_rows(*report);
  return report;
}

}  // namespace syncopate::experiments
