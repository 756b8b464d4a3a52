#include "experiments/config/variation.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "experiments/config/nearest_name.h"
#include "experiments/config/option_table.h"

namespace syncopate::experiments {
namespace {

// Modes are named by --modes; the rest is of the comparison as a whole.
constexpr std::string_view kFixed[] = {"mode",   "consistency", "collective", "sync-every",     "gossip",
                                       "output", "repeat",      "dry-run",    "target-accuracy"};

Status wrong(std::string message) { return Status(Code::kInvalidArgument, std::move(message)); }

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  return parts;
}

std::optional<OptionSpec> option_named(const std::string& name) {
  for (OptionSpec& option : option_table()) {
    if (option.name == name) return std::move(option);
  }
  return std::nullopt;
}

std::string nearest_option(const std::string& name) {
  std::vector<std::string> known;
  for (const OptionSpec& option : option_table()) known.push_back(option.name);
  return nearest_name(name, known);
}

}  // namespace

Result<Variation> parse_variation(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return wrong(fmt::format("--vary={}: must be an option and its values, as in --vary=batch-size=32,64,128", text));
  }
  Variation variation{std::string(text.substr(0, equals)), split(std::string(text.substr(equals + 1)))};
  if (std::ranges::find(kFixed, variation.option) != std::end(kFixed)) {
    return wrong(fmt::format("--vary={}: {} cannot be varied; modes stand in --modes", text, variation.option));
  }
  if (!option_named(variation.option)) {
    const std::string nearest = nearest_option(variation.option);
    return wrong(fmt::format("--vary={}: there is no option {}; {}", text, variation.option,
                             nearest.empty() ? "--help lists all" : fmt::format("did you mean {}?", nearest)));
  }
  if (variation.values.empty()) return wrong(fmt::format("--vary={}: names no value", text));
  for (auto value = variation.values.begin(); value != variation.values.end(); ++value) {
    if (std::find(variation.values.begin(), value, *value) == value) continue;
    return wrong(fmt::format("--vary={}: names {} twice; the noise floor is measured anyway", text, *value));
  }
  return variation;
}

Result<VariedRuns> varied_runs(const RunConfig& base, const std::string& modes, const Variation& variation) {
  const std::optional<OptionSpec> option = option_named(variation.option);
  std::vector<RunConfig> bases;
  for (const std::string& value : variation.values) {
    bases.push_back(base);
    SYNCOPATE_RETURN_IF_ERROR(option->set(bases.back(), value));
  }
  VariedRuns varied;
  for (const std::string& mode : split(modes)) {
    for (std::size_t i = 0; i < bases.size(); ++i) {
      const std::string label = fmt::format("{} {}={}", mode, variation.option, variation.values[i]);
      Result<std::vector<ComparedRun>> run = comparison_runs(bases[i], mode);
      if (!run.ok()) {
        varied.left_out.push_back(fmt::format("{}: left out: {}", label, run.status().message()));
        continue;
      }
      ComparedRun& only = run->front();
      const bool has_effect = option->has_effect(only.config);
      if (has_effect) only.label = label, only.value = variation.values[i];
      varied.runs.push_back(std::move(only));
      if (!has_effect) break;
    }
  }
  if (varied.runs.empty()) {
    return wrong(varied.left_out.empty() ? fmt::format("--modes={}: names no mode", modes) : varied.left_out.front());
  }
  return varied;
}

}  // namespace syncopate::experiments
