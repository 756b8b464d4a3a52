#include "experiments/lab/report/finished_run.h"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "common/os/regular_file.h"
#include "experiments/config/toml.h"
#include "experiments/lab/report/evals_csv.h"

namespace syncopate::experiments {
namespace {

constexpr std::uint64_t kMostFinishedBytes = 64 << 20;  // size limit of a file: far more than a run of a day leaves

// Reads a file and parses its text with `read`. Errors name the file.
template <typename Read>
auto read_file(const std::string& path, Read&& read) -> decltype(read(std::string_view())) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string text, read_regular_file(path, kMostFinishedBytes));
  auto value = read(std::string_view(text));
  if (!value.ok()) return Status::data_loss(fmt::format("{}: {}", path, value.status().message()));
  return value;
}

}  // namespace

Result<FinishedRun> read_finished_run(const std::string& folder) {
  std::error_code ignored;
  if (!std::filesystem::exists(folder + "/config.toml", ignored) &&
      !std::filesystem::exists(folder + "/summary.json", ignored)) {
    return Status::invalid_argument(
        fmt::format("{}: must be the folder of a finished run, as results/NAME; modes stand in --modes", folder));
  }
  FinishedRun run{.folder = folder, .config = {}, .summary = {}, .evals = {}, .environment = {}};
  SYNCOPATE_ASSIGN_OR_RETURN(run.config, read_file(folder + "/config.toml", from_toml_text));
  SYNCOPATE_ASSIGN_OR_RETURN(run.summary, read_file(folder + "/summary.json", read_summary));
  const std::size_t repeats = run.summary.reports.size();
  SYNCOPATE_ASSIGN_OR_RETURN(
      run.evals, read_file(folder + "/evals.csv", [&](std::string_view text) { return read_evals(text, repeats); }));
  SYNCOPATE_ASSIGN_OR_RETURN(run.environment, read_file(folder + "/environment.json", read_environment));
  return run;
}

}  // namespace syncopate::experiments
