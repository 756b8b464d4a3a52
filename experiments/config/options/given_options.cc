#include "experiments/config/options/given_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/text/nearest_name.h"
#include "common/text/printable_text.h"
#include "experiments/config/options/option_kinds.h"
#include "experiments/config/options/option_table.h"
#include "experiments/config/toml.h"

namespace syncopate::experiments {
namespace {

Status unknown_in_file(const std::string& name, const std::vector<OptionSpec>& table) {
  std::vector<std::string> known;
  for (const OptionSpec& option : table) {
    if (option.in_file) known.push_back(option.name);
    if (!option.in_file && option.name == name) {
      return Status::invalid_argument(
          fmt::format("{}: may not stand in a config file; give --{} on the command line", name, name));
    }
  }
  return Status::invalid_argument(unknown_entry(name, known));
}

}  // namespace

Result<GivenOptions> given_in_file(std::string_view toml) {
  SYNCOPATE_ASSIGN_OR_RETURN(const auto entries, read_toml(toml));
  return given_in_entries(entries);
}

Result<GivenOptions> given_in_entries(const std::vector<std::pair<std::string, std::string>>& entries) {
  const std::vector<OptionSpec> table = option_table();
  RunRequest unused;
  GivenOptions given;
  for (const auto& [name, value] : entries) {
    const auto option = std::ranges::find(table, name, &OptionSpec::name);
    if (option == table.end() || !option->in_file) return unknown_in_file(name, table);
    if (option_kinds::has_control_characters(value)) {
      return Status::invalid_argument(
          fmt::format("{}: '{}' has control characters; leave them out", name, printable(value)));
    }
    if (!given.emplace(name, value).second)
      return Status::invalid_argument(fmt::format("{}: given twice; once is enough", name));
    // Here, where the caller can say in which file the value stands.
    SYNCOPATE_RETURN_IF_ERROR(option->set(unused, value));
  }
  return given;
}

GivenOptions merge(const GivenOptions& line, GivenOptions file) {
  for (const OptionSpec& option : option_table()) {
    if (line.contains(option.name)) file.erase(option.excludes);
  }
  GivenOptions merged = line;
  merged.merge(file);
  return merged;
}

Result<RunRequest> apply_options(const GivenOptions& given) {
  RunRequest request;
  for (const OptionSpec& option : option_table()) {
    const auto found = given.find(option.name);
    if (found == given.end()) continue;
    if (const auto other = given.find(option.excludes); other != given.end()) {
      return Status::invalid_argument(fmt::format("--{}={}: cannot stand beside --{}={}; give one of the two",
                                                  option.name, found->second, other->first, other->second));
    }
    SYNCOPATE_RETURN_IF_ERROR(option.set(request, found->second));
  }
  return request;
}

std::string as_typed(const OptionSpec& option, const std::string& value) {
  const bool is_switch = option.placeholder.empty() && value == "true";
  return is_switch ? "--" + option.name : fmt::format("--{}={}", option.name, value);
}

Status check_effect(const GivenOptions& given, const std::vector<ResolvedRun>& runs, const std::string& modes) {
  for (const OptionSpec& option : option_table()) {
    const auto found = given.find(option.name);
    if (found == given.end()) continue;
    if (!option.with_command && std::ranges::all_of(runs, runs_command)) {
      return Status::invalid_argument(fmt::format("{}: has no effect on a program of your own ({}); leave it out",
                                                  as_typed(option, found->second), command_of(runs.front())));
    }
    if (option.only_with().empty()) continue;
    if (std::ranges::any_of(runs, [&](const ResolvedRun& run) { return option.has_effect(run); })) continue;
    const bool needs_mode = option.only_with().find("--mode=") != std::string::npos;
    return Status::invalid_argument(fmt::format("{}: has an effect only with {}; leave it out or add that{}",
                                                as_typed(option, found->second), option.only_with(),
                                                needs_mode && !modes.empty() ? ", as a mode of " + modes : ""));
  }
  return {};
}

}  // namespace syncopate::experiments
