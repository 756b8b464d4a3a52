#include "experiments/lab/compare/measured_once.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "common/os/regular_file.h"
#include "common/os/whole_file.h"
#include "experiments/cluster/measurement/solo_measurement.h"
#include "experiments/cluster/process/data_of.h"
#include "experiments/cluster/simulated/solo_times.h"
#include "experiments/lab/compare/row_runner.h"

namespace syncopate::experiments {
namespace {

using Say = std::function<void(const std::string& what)>;

constexpr std::uint64_t kMostRatesBytes = 4096;

bool is_there(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool measures_computing(const ResolvedRun& config) {
  return config.cluster == ClusterKind::kSimulated && config.compute.is_solo() && !is_profile(config) &&
         !runs_command(config);  // whose own steps are measured
}

bool measures_processing(const ResolvedRun& config) {
  return config.cluster == ClusterKind::kSimulated && config.processing.source == ProcessingModel::Source::kSolo &&
         !runs_command(config);  // only the program knows its tensors
}

// Returns the profile's file; empty where the model has none.
Result<std::string> computing_file(const ResolvedRun& config, const std::string& folder, const Say& say) {
  const std::string what = fmt::format("{} batch {}", config.model, config.batch_size);
  const std::string path =
      fmt::format("{}/{}.json", folder, folder_of(fmt::format("{} {}", what, name_of(config.backend))));
  if (is_there(path)) return path;
  say(fmt::format("measuring {}, alone", what));
  const Result<prediction::ModelProfile> profile = measure_profile(config);
  if (profile.status().code() == Code::kInvalidArgument) return std::string();
  if (!profile.ok()) return profile.status();
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(path, to_json(*profile)));
  return path;
}

Result<ProcessingModel> processing_rates(const ResolvedRun& config, const std::string& folder, const Say& say) {
  SYNCOPATE_ASSIGN_OR_RETURN(const ParamLayout layout, layout_of(config));
  const std::string what = fmt::format("processing {} {} {}", name_of(config.optimizer), to_string(config.compress),
                                       elements_to_measure(layout));
  const std::string path = fmt::format("{}/{}.txt", folder, folder_of(what));
  if (!is_there(path)) {
    say(fmt::format("measuring {}, alone", what));
    const ProcessingTimes times = SoloTimes().processing(config, layout);
    const auto rate = [](double seconds_a_byte) { return seconds_a_byte > 0 ? 1 / seconds_a_byte : 0; };
    const ProcessingModel measured{.source = ProcessingModel::Source::kGiven,
                                   .sum = rate(times.sum),
                                   .update = rate(times.update),
                                   .encode = rate(times.encode),
                                   .decode = rate(times.decode)};
    SYNCOPATE_RETURN_IF_ERROR(write_whole_file(path, measured.to_string()));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string text, read_regular_file(path, kMostRatesBytes));
  Result<ProcessingModel> rates = ProcessingModel::parse(text);
  if (!rates.ok()) return rates.status().in(path);
  return rates;
}

}  // namespace

Status measure_once(std::vector<PlannedRun>& runs, const std::string& folder, const Say& say) {
  const bool any = std::ranges::any_of(
      runs, [](const PlannedRun& run) { return measures_computing(run.config) || measures_processing(run.config); });
  if (any) SYNCOPATE_RETURN_IF_ERROR(make_folder(folder));
  for (PlannedRun& run : runs) {
    if (measures_computing(run.config)) {
      SYNCOPATE_ASSIGN_OR_RETURN(run.config.compute.profile, computing_file(run.config, folder, say));
    }
    if (measures_processing(run.config)) {
      SYNCOPATE_ASSIGN_OR_RETURN(run.config.processing, processing_rates(run.config, folder, say));
    }
  }
  return {};
}

bool all_are_measured(const std::vector<PlannedRun>& runs) {
  return std::ranges::none_of(runs, [](const PlannedRun& run) { return measures_computing(run.config); });
}

}  // namespace syncopate::experiments
