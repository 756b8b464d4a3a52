#include "experiments/lab/why/explained_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <string_view>
#include <utility>

#include "common/os/regular_file.h"
#include "experiments/config/toml.h"
#include "experiments/lab/report/summary_reading.h"
#include "experiments/lab/run/run_prediction.h"
#include "experiments/lab/why/finished_pace.h"

namespace syncopate::experiments {
namespace {

constexpr std::uint64_t kMostSummaryBytes = 64 << 20;
constexpr std::uint64_t kMostStepsBytes = std::uint64_t{1} << 30;  // some five million steps

// Reads a file and parses its text with `read`. Errors name the file.
template <typename Read>
auto parse_file(const std::string& path, std::uint64_t limit, Read&& read) -> decltype(read(std::string_view())) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string text, read_regular_file(path, limit));
  auto value = read(std::string_view(text));
  if (!value.ok()) return Status::data_loss(fmt::format("{}: {}", path, value.status().message()));
  return value;
}

}  // namespace

Result<RecordedRun> read_recorded_run(const std::string& folder) {
  std::error_code ignored;
  if (std::filesystem::exists(folder + "/comparison.json", ignored)) {
    return Status::invalid_argument(
        fmt::format("{}: must be the folder of one run; a comparison has one for each run in it", folder));
  }
  if (!std::filesystem::exists(folder + "/config.toml", ignored) &&
      !std::filesystem::exists(folder + "/summary.json", ignored)) {
    return Status::invalid_argument(fmt::format("{}: must be the folder of a finished run, as results/NAME", folder));
  }
  RecordedRun run{.folder = folder, .config = {}, .summary = {}, .steps = {}};
  SYNCOPATE_ASSIGN_OR_RETURN(run.config, parse_file(folder + "/config.toml", kMostSummaryBytes, from_toml_text));
  SYNCOPATE_ASSIGN_OR_RETURN(run.summary, parse_file(folder + "/summary.json", kMostSummaryBytes, read_summary));
  if (run.summary.reports.empty()) return Status::data_loss(fmt::format("{}/summary.json: has no repeat", folder));
  run.repeat = static_cast<std::size_t>(&middle_report(run.summary.reports) - run.summary.reports.data());
  SYNCOPATE_ASSIGN_OR_RETURN(run.steps, parse_file(folder + "/steps.csv", kMostStepsBytes, [&](std::string_view text) {
                               return read_steps(text, static_cast<int>(run.repeat));
                             }));
  return run;
}

namespace {

// The part of the exposed exchange that `change` leaves, by the closed form of steps that workers make together: of
// what they take longer than over links that carry everything at once.
template <typename Change>
std::optional<double> exchange_left(const ResolvedRun& config, double ideal_ms, const Change& change) {
  constexpr std::int64_t kNoTime = std::int64_t{1} << 60;  // bits a second
  if (has_servers(config) && consistency_of(config).to_string() != "sync") return std::nullopt;
  const double samples = static_cast<double>(config.workers) * config.batch_size;
  const auto exchange_ms = [&](const ResolvedRun& run) -> std::optional<double> {
    if (!run.shape) return std::nullopt;
    ResolvedRun at_once = run;
    at_once.shape = LinkShape{.bits_per_second = kNoTime};
    const std::optional<double> rate = predicted_rate(run, ideal_ms / 1e3);
    const std::optional<double> free = predicted_rate(at_once, ideal_ms / 1e3);
    if (!rate || !free) return std::nullopt;
    return 1e3 * samples * (1 / *rate - 1 / *free);
  };
  ResolvedRun other = config;
  change(other);
  const std::optional<double> now = exchange_ms(config), then = exchange_ms(other);
  if (!now || !then || *now <= 0) return std::nullopt;
  return std::clamp(*then / *now, 0.0, 1.0);
}

void set_device(const RecordedRun& recorded, const prediction::DeviceRates* device, ExplainedRun& run) {
  const ResolvedRun& config = recorded.config;
  run.device = recorded.summary.device;
  if (device == nullptr) device = prediction::device_reported_as(run.device);
  if (device != nullptr) run.least = least_on(*device, config);
  run.updates_on_device = !is_staged(config);
  run.may_capture_steps = may_capture_steps(config);
}

}  // namespace

Result<ExplainedRun> explain(const RecordedRun& recorded, const prediction::DeviceRates* device) {
  ExplainedRun run{.folder = recorded.folder,
                   .outcome = recorded.summary.outcome,
                   .repeat = recorded.repeat,
                   .repeats = recorded.summary.reports.size(),
                   .pace = pace_of(recorded.config, recorded.summary, recorded.repeat)};
  std::optional<Waterfall> waterfall = make_waterfall(recorded.steps, run.pace);
  if (!waterfall || waterfall->measured_ms <= 0) {
    return Status::data_loss(
        fmt::format("{}/steps.csv: has no step, so that there is nothing to explain", recorded.folder));
  }
  run.waterfall = std::move(*waterfall);
  if (runs_command(recorded.config)) run.pace.batch_size = run.waterfall.batch_size;
  if (has_servers(recorded.config)) {
    run.pace.exchange_left_by_servers = exchange_left(recorded.config, run.waterfall.ideal_ms, [](ResolvedRun& other) {
      if (!std::exchange(other.colocated, false)) other.servers *= 2;
    });
  }
  if (recorded.config.shape) {
    run.pace.exchange_left_by_link = exchange_left(recorded.config, run.waterfall.ideal_ms,
                                                   [](ResolvedRun& other) { other.shape->bits_per_second *= 2; });
  }
  run.causes = causes_of(run.waterfall, run.pace);
  if (run.pace.on_device) set_device(recorded, device, run);
  // The form is of full batches and of all workers.
  run.predicted_rate = predicted_rate(recorded.config, run.waterfall.ideal_ms / 1e3);
  if (run.predicted_rate) {
    *run.predicted_rate *= run.waterfall.workers * run.waterfall.batch_size /
                           (static_cast<double>(recorded.config.workers) * recorded.config.batch_size);
  }
  run.first_step = std::numeric_limits<std::int64_t>::max();
  for (const auto& [worker, steps] : recorded.steps.of_workers) {
    for (const StepRecord& step : steps) run.first_step = std::min(run.first_step, step.step);
  }
  run.steps_made = recorded.summary.reports[recorded.repeat].total_steps;
  run.steps_recorded = static_cast<std::int64_t>(recorded.steps.count());
  run.job_rate = recorded.summary.reports[recorded.repeat].samples_per_second;
  return run;
}

Result<ExplainedRun> explain_run(const std::string& folder, const prediction::DeviceRates* device) {
  SYNCOPATE_ASSIGN_OR_RETURN(const RecordedRun recorded, read_recorded_run(folder));
  return explain(recorded, device);
}

}  // namespace syncopate::experiments
