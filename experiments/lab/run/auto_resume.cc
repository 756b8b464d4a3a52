#include "experiments/lab/run/auto_resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "common/os/regular_file.h"
#include "common/os/whole_file.h"
#include "common/text/number.h"
#include "common/text/printable_text.h"
#include "experiments/checkpoint/checkpoint_store.h"
#include "experiments/config/options/given_options.h"
#include "experiments/config/toml.h"
#include "experiments/lab/report/kept_results.h"
#include "experiments/lab/report/summary_json.h"
#include "experiments/lab/report/summary_reading.h"

namespace syncopate::experiments {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSettingsFile = "config.toml";
constexpr std::uint64_t kMostResultBytes = 64 << 20;
// These may differ between the parts of one run: how long it is, what is kept of it, where it runs, and what ends it.
constexpr std::array<std::string_view, 13> kMayDiffer{
    "epochs",         "steps",        "checkpoint-every", "keep",           "grace",     "evaluate-every", "hosts",
    "listen-address", "remote-shell", "remote-program",   "wait-for-hosts", "transport", "on-nan",
};
// These say how long it is.
constexpr std::array<std::string_view, 2> kLengths{"epochs", "steps"};

// Whether a run that was killed before its settings were written may have left that.
bool is_of_beginning(const std::string& name) {
  return name == "logs" || name.starts_with(".reserve-") || name.starts_with(kSettingsFile);
}

std::string free_name(const fs::path& folder) {
  std::error_code ignored;
  for (int number = 1;; ++number) {
    const fs::path path = folder / fmt::format("{}{}", kBeforeFolder, number);
    if (!fs::exists(path, ignored)) return path.string();
  }
}

// Returns the settings of a record by name.
Result<GivenOptions> settings_in(const ResolvedRun& config) { return given_in_file(to_toml(config)); }

std::string value_of(const GivenOptions& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? "not given" : found->second;
}

// Returns what differs, as "--seed is 1 there and 2 here, ...", without what may; empty: nothing.
std::string differences(const GivenOptions& there, const GivenOptions& here) {
  GivenOptions all = there;
  all.insert(here.begin(), here.end());
  std::string text;
  for (const auto& [name, value] : all) {
    if (std::ranges::find(kMayDiffer, name) != kMayDiffer.end()) continue;
    const std::string one = value_of(there, name), other = value_of(here, name);
    if (one == other) continue;
    text += fmt::format("{}--{} is {} there and {} here", text.empty() ? "" : ", ", name, printable(one), other);
  }
  return text;
}

// Whether a completed run of these settings is as long as is asked for, or longer. Both are of one form: epochs alone,
// or steps alone.
bool is_long_enough(const GivenOptions& there, const GivenOptions& here) {
  return std::ranges::all_of(kLengths, [&](std::string_view length) {
    const std::string name(length);
    const std::string done = value_of(there, name), asked = value_of(here, name);
    if (done == asked) return true;
    const auto done_number = parse_number<std::int64_t>(done), asked_number = parse_number<std::int64_t>(asked);
    return done_number && asked_number && *done_number >= *asked_number;
  });
}

std::string length_of(const GivenOptions& settings) {
  const bool counts_steps = settings.contains("steps");
  const std::string count = value_of(settings, counts_steps ? "steps" : "epochs");
  return fmt::format("{} {}{}", count, counts_steps ? "step" : "epoch", count == "1" ? "" : "s");
}

// Returns how a run has ended; empty: it has not.
std::string outcome_in(const fs::path& folder) {
  const Result<std::string> text = read_regular_file((folder / "summary.json").string(), kMostResultBytes);
  if (!text.ok()) return {};
  const Result<RunSummary> summary = read_summary(*text);
  return summary.ok() && !summary->reports.empty() ? summary->outcome : std::string();
}

bool is_completed(const std::string& outcome) {
  return outcome == RunFacts().outcome || outcome.starts_with("stopped at the target");
}

}  // namespace

Result<AutoResume> AutoResume::look(const ResolvedRun& config) {
  const fs::path folder(config.output);
  const auto refused = [&](const std::string& what) {
    return Status::invalid_argument(fmt::format("--output={}: {}", config.output, what));
  };
  std::error_code ignored;
  const bool has_lock = fs::exists(folder / kFolderLock, ignored);
  const auto check = [&] {
    if (fs::exists(folder, ignored) && !fs::is_directory(folder, ignored)) return check_holds_nothing(config.output);
    const std::vector<std::string> names = names_in(config.output);
    const auto is_of_run = [&](const std::string& name) {
      return stays_for_resume(name) || (has_lock && is_of_beginning(name));
    };
    const bool has_settings = std::ranges::find(names, kSettingsFile) != names.end();
    if (has_settings || std::ranges::all_of(names, is_of_run)) return Status();
    return refused("holds files of something else than a run; name another directory, or remove it");
  };
  AutoResume found(config.output);
  if (config.dry_run) {
    SYNCOPATE_RETURN_IF_ERROR(check());
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(ResultsFolder taken, ResultsFolder::take(config.output, check));
    found.taken_.emplace(std::move(taken));
  }
  const std::vector<std::string> names = names_in(config.output);
  const bool has_settings = std::ranges::find(names, kSettingsFile) != names.end();
  const CheckpointStore checkpoints((folder / kCheckpointsFolder).string());
  const bool has_checkpoints = !checkpoints.steps().empty();
  found.kind_ = has_checkpoints ? Kind::kGoOn : Kind::kBegin;
  if (!std::ranges::all_of(names, stays_for_resume)) found.aside_ = free_name(folder);
  if (!has_settings) return found;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string text,
                             read_regular_file((folder / kSettingsFile).string(), kMostResultBytes));
  const Result<ResolvedRun> kept = from_toml_text(text);
  if (!kept.ok()) return kept.status().in((folder / kSettingsFile).string());
  SYNCOPATE_ASSIGN_OR_RETURN(const GivenOptions there, settings_in(*kept));
  SYNCOPATE_ASSIGN_OR_RETURN(const GivenOptions here, settings_in(config));
  if (const std::string differing = differences(there, here); !differing.empty()) {
    return refused(
        fmt::format("holds a run with other settings: {}; give it its own, or name another directory", differing));
  }
  const std::string outcome = outcome_in(folder);
  if (is_completed(outcome) && is_long_enough(there, here)) {
    found.kind_ = Kind::kCompleted;
    found.aside_.clear();
    found.line_ =
        fmt::format("{} has this run, {}: {}; nothing is left to train", config.output, outcome, length_of(there));
  } else if (is_completed(outcome) && !has_checkpoints) {
    return refused(
        fmt::format("holds this run, completed with {}, and no checkpoint to go on from; give --checkpoint-every from "
                    "the start, and name another directory",
                    length_of(there)));
  } else {
    found.line_ = fmt::format("{} {}; what the run before has left there goes to {}",
                              has_checkpoints ? "going on in" : "beginning again in", config.output, found.aside_);
    if (!has_checkpoints) found.line_ += ", since it has no checkpoint";
  }
  return found;
}

Status AutoResume::set_aside() {
  if (aside_.empty()) return {};
  SYNCOPATE_RETURN_IF_ERROR(make_folder(aside_));
  std::vector<std::string> names = names_in(folder_);
  std::erase_if(names, stays_for_resume);
  // The settings go last, since they say what the rest is of.
  std::stable_partition(names.begin(), names.end(), [](const std::string& name) { return name != kSettingsFile; });
  for (const std::string& name : names) {
    std::error_code error;
    fs::rename(fs::path(folder_) / name, fs::path(aside_) / name, error);
    if (!error) continue;
    return Status::resource_exhausted(
        fmt::format("{}/{}: cannot be moved to {} ({})", folder_, name, aside_, error.message()));
  }
  return {};
}

}  // namespace syncopate::experiments
