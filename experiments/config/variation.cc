#include "experiments/config/variation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

#include "common/text/nearest_name.h"
#include "experiments/config/line_options.h"
#include "experiments/config/options/option_table.h"
#include "experiments/config/resolution.h"

namespace syncopate::experiments {
namespace {

// Options that belong to the comparison as a whole.
constexpr std::string_view kOfWholeComparison[] = {
    "output", "repeat", "dry-run", "target-accuracy", "stop-at-target", "resume", "checkpoint-key-file"};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

std::optional<OptionSpec> option_named(const std::string& name) {
  for (OptionSpec& option : option_table()) {
    if (option.name == name) return std::move(option);
  }
  return std::nullopt;
}

// Returns why it cannot be varied, with what would be right; nothing if it can.
std::string not_varied(const OptionSpec& option) {
  if (std::ranges::find(kOfWholeComparison, option.name) != std::end(kOfWholeComparison)) {
    return "it is of the comparison as a whole; give it by itself";
  }
  if (!option.of_mode) return {};
  // The names of modes that a colon joins have an option's name in them.
  const std::vector<OptionSpec> options = all_options();
  for (const std::string& mode : split(std::ranges::find(options, "modes", &OptionSpec::name)->range, ' ')) {
    if (mode.find(fmt::format(":{}", option.name)) == std::string::npos) continue;
    return fmt::format("it makes a mode, and these stand in --modes, as {} does", mode.substr(0, mode.find(',')));
  }
  return "modes stand in --modes";
}

std::string nearest_option(const std::string& name) {
  std::vector<std::string> known;
  for (const OptionSpec& option : option_table()) known.push_back(option.name);
  return nearest_name(name, known);
}

// One value of each variation.
using Combination = std::vector<std::string>;

std::vector<Combination> combinations(std::span<const Variation> variations) {
  std::vector<Combination> all = {{}};
  for (const Variation& variation : variations) {
    std::vector<Combination> longer;
    for (const Combination& combination : all) {
      for (const std::string& value : variation.values) {
        longer.push_back(combination);
        longer.back().push_back(value);
      }
    }
    all = std::move(longer);
  }
  return all;
}

Result<RunRequest> with_values(RunRequest config, std::span<const Variation> variations, const Combination& values) {
  for (std::size_t i = 0; i < variations.size(); ++i) {
    SYNCOPATE_RETURN_IF_ERROR(set_varied(config, variations[i].option, values[i]));
  }
  return config;
}

std::string label_of(const std::string& mode, const std::vector<std::pair<std::string, std::string>>& values) {
  std::string label = mode;
  for (const auto& [option, value] : values) label += fmt::format(" {}={}", option, value);
  return label;
}

// Returns the values of the options that have an effect under `config`; all if there is no config.
std::vector<std::pair<std::string, std::string>> named(std::span<const Variation> variations, const Combination& values,
                                                       const RunRequest* config) {
  const std::optional<ResolvedRun> run = config == nullptr ? std::nullopt : std::optional(presumed(*config));
  std::vector<std::pair<std::string, std::string>> pairs;
  for (std::size_t i = 0; i < variations.size(); ++i) {
    if (run && !option_named(variations[i].option)->has_effect(*run)) continue;
    pairs.emplace_back(variations[i].option, values[i]);
  }
  return pairs;
}

}  // namespace

Result<Variation> parse_variation(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return Status::invalid_argument(
        fmt::format("--vary={}: must be an option and its values, as in --vary=batch-size=32,64,128", text));
  }
  const std::string list(text.substr(equals + 1));
  const char separator = list.find(';') != std::string::npos ? ';' : ',';
  Variation variation{std::string(text.substr(0, equals)), split(list, separator)};
  const std::optional<OptionSpec> option = option_named(variation.option);
  const std::string refusal = option ? not_varied(*option) : "";
  if (!refusal.empty()) {
    return Status::invalid_argument(fmt::format("--vary={}: {} cannot be varied: {}", text, variation.option, refusal));
  }
  if (!option) {
    const std::string nearest = nearest_option(variation.option);
    return Status::invalid_argument(
        fmt::format("--vary={}: there is no option {}; {}", text, variation.option,
                    nearest.empty() ? "--help lists all" : fmt::format("did you mean {}?", nearest)));
  }
  if (variation.values.empty()) return Status::invalid_argument(fmt::format("--vary={}: names no value", text));
  for (auto value = variation.values.begin(); value != variation.values.end(); ++value) {
    if (std::find(variation.values.begin(), value, *value) == value) continue;
    return Status::invalid_argument(
        fmt::format("--vary={}: names {} twice; every row is repeated by --repeat", text, *value));
  }
  return variation;
}

Status set_varied(RunRequest& config, const std::string& option, const std::string& value) {
  const std::optional<OptionSpec> spec = option_named(option);
  if (!spec) return Status::invalid_argument(fmt::format("there is no option {}", option));
  const bool is_switch = spec->placeholder.empty();
  if (value == "default" || (is_switch && value == "false")) return {};
  if (is_switch && value != "true") {
    return Status::invalid_argument(fmt::format("--vary={}={}: a switch must be true or false", option, value));
  }
  const Status status = spec->set(config, value);
  const bool means_not_given = value == "none" && spec->usual == "none";
  return means_not_given ? Status() : status;
}

Result<VariedRuns> varied_runs(const RunRequest& base, const std::string& modes,
                               std::span<const Variation> variations) {
  const std::vector<Combination> all = combinations(variations);
  std::vector<RunRequest> bases;
  for (const Combination& values : all) {
    SYNCOPATE_ASSIGN_OR_RETURN(RunRequest config, with_values(base, variations, values));
    bases.push_back(std::move(config));
  }
  VariedRuns varied;
  std::set<std::string> labels;
  const std::vector<std::string> all_modes = split(modes, ',');
  for (auto mode = all_modes.begin(); mode != all_modes.end(); ++mode) {
    if (std::find(all_modes.begin(), mode, *mode) == mode) continue;
    return Status::invalid_argument(
        fmt::format("--modes={}: names {} twice; every row is repeated by --repeat", modes, *mode));
  }
  SYNCOPATE_RETURN_IF_ERROR(check_modes(modes));
  for (const std::string& mode : all_modes) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      Result<std::vector<ComparedRun>> run = comparison_runs(bases[i], mode);
      if (!run.ok()) {
        varied.left_out.push_back(fmt::format("{}: left out: {}", label_of(mode, named(variations, all[i], nullptr)),
                                              run.status().message()));
        continue;
      }
      ComparedRun& only = run->front();
      only.values = named(variations, all[i], &only.config);
      only.label = label_of(mode, only.values);
      if (labels.insert(only.label).second) varied.runs.push_back(std::move(only));
    }
  }
  if (varied.runs.empty()) {
    return Status::invalid_argument(varied.left_out.empty() ? fmt::format("--modes={}: names no mode", modes)
                                                            : varied.left_out.front());
  }
  return varied;
}

}  // namespace syncopate::experiments
