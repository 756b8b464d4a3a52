#include "experiments/lab/compare/kept_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "common/os/regular_file.h"
#include "common/os/whole_file.h"
#include "experiments/config/toml.h"
#include "experiments/lab/report/finished_run.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostSettingsBytes = 1 << 20;

std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// Returns the first lines in which the files differ, without comments: "seed = 1, not seed = 2".
std::string difference_between(std::string_view there, std::string_view asked) {
  const auto setting = [](std::string_view line) {
    const std::string_view bare = line.substr(0, line.find(" #"));
    return bare.empty() ? std::string("nothing") : std::string(bare.substr(0, bare.find_last_not_of(' ') + 1));
  };
  while (!there.empty() || !asked.empty()) {
    const std::string one = setting(next_line(there)), other = setting(next_line(asked));
    if (one != other) return fmt::format("{}, not {}", one, other);
  }
  return "the same settings, otherwise described";
}

}  // namespace

Result<KeptRuns> KeptRuns::open(const std::string& folder) {
  const std::string mark = folder + kComparisonMark;
  const auto check = [&] {
    std::error_code ignored;
    if (names_in(folder).empty() || fs::exists(mark, ignored)) return Status();
    return Status::invalid_argument(fmt::format(
        "--output={}: holds files of something else than a comparison; name another directory, or remove it", folder));
  };
  SYNCOPATE_ASSIGN_OR_RETURN(ResultsFolder taken, ResultsFolder::take(folder, check));
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(mark, ""));
  return KeptRuns(std::move(taken));
}

Result<std::optional<JobResult>> KeptRuns::find(const ResolvedRun& config) {
  if (free_.contains(config.output)) return std::optional<JobResult>();
  if (names_in(config.output).empty()) {
    free_.insert(config.output);
    return std::optional<JobResult>();
  }
  const Result<std::string> there = read_regular_file(config.output + "/config.toml", kMostSettingsBytes);
  Result<JobResult> result = result_by_files(config.output);
  const bool is_completed = there.ok() && result.ok() && result->exit == ExitCode::kSuccess;
  if (!is_completed) {
    std::error_code error;
    fs::remove_all(config.output, error);
    if (!error) {
      free_.insert(config.output);
      return std::optional<JobResult>();
    }
    return Status::resource_exhausted(fmt::format("{}: cannot be removed ({})", config.output, error.message()));
  }
  if (const std::string asked = to_toml(config); *there != asked) {
    return Status::invalid_argument(
        fmt::format("{}: was completed with other settings ({}); name another --output, or remove it", config.output,
                    difference_between(*there, asked)));
  }
  return std::optional(std::move(*result));
}

Result<JobResult> result_by_files(const std::string& folder) {
  SYNCOPATE_ASSIGN_OR_RETURN(FinishedRun run, read_finished_run(folder));
  JobResult result;
  result.config = std::move(run.config);
  result.config.output = folder;
  result.reports = std::move(run.summary.reports);
  result.evals = std::move(run.evals);
  result.facts.outcome = run.summary.outcome;
  result.facts.events = std::move(run.summary.events);
  result.facts.parameters = run.summary.parameters;
  result.facts.steps_per_epoch = run.summary.steps_per_epoch;
  const bool is_whole = result.facts.outcome == RunFacts().outcome && result.reports.size() == 1;
  if (!is_whole) {
    result.exit = ExitCode::kProcessLost;
    result.verdict = result.facts.outcome;
  }
  return result;
}

}  // namespace syncopate::experiments
