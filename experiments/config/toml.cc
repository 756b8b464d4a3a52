#include "experiments/config/toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "common/text/printable_text.h"
#include "experiments/config/options/given_options.h"
#include "experiments/config/options/option_table.h"
#include "experiments/config/resolution.h"

namespace syncopate::experiments {
namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

bool only_comment(std::string_view rest) {
  rest = trim(rest);
  return rest.empty() || rest.front() == '#';
}

// Reads a quoted string that is followed by nothing but a comment; none if it is not one.
std::optional<std::string> quoted(std::string_view text) {
  const char quote = text.front();
  std::string value;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == quote) return only_comment(text.substr(i + 1)) ? std::optional(value) : std::nullopt;
    if (text[i] != '\\' || quote == '\'') {
      value += text[i];
      continue;
    }
    constexpr std::string_view kEscapes = "\"\\tn", kMeaning = "\"\\\t\n";
    const std::size_t escape = ++i < text.size() ? kEscapes.find(text[i]) : std::string_view::npos;
    if (escape == std::string_view::npos) return std::nullopt;
    value += kMeaning[escape];
  }
  return std::nullopt;
}

std::optional<std::string> value_of(std::string_view text) {
  if (text.empty()) return std::nullopt;
  if (text.front() == '"' || text.front() == '\'') return quoted(text);
  const std::string_view bare = trim(text.substr(0, text.find('#')));
  if (bare.empty() || bare.find_first_of(" \t[]{},\"'=") != std::string_view::npos) return std::nullopt;
  return std::string(bare);
}

std::string quote(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + '"';
}

// Returns the lines of all options that are allowed in a file and for which `value_of` has a value, under their groups.
template <typename ValueOf>
std::string file_of(ValueOf&& value_of) {
  std::string text;
  std::string group;
  for (const OptionSpec& option : option_table()) {
    const std::string value = option.in_file ? value_of(option) : std::string();
    if (value.empty()) continue;
    if (option.group != group) {
      text += fmt::format("{}# {}\n", text.empty() ? "" : "\n", option.group);
      group = option.group;
    }
    const bool says_how = option.placeholder.empty() && value != "true";  // a switch
    text +=
        fmt::format("{} = {}  # {}\n", option.name, option.is_text || says_how ? quote(value) : value, option.sentence);
  }
  return text;
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> read_toml(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (int line_number = 1; !text.empty(); ++line_number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (only_comment(line)) continue;
    const std::size_t equals = line.find('=');
    const std::string_view name = trim(line.substr(0, equals));
    std::optional<std::string> value;
    if (equals != std::string_view::npos && !name.empty()) value = value_of(trim(line.substr(equals + 1)));
    if (!value) {
      return Status::invalid_argument(fmt::format(
          "line {}: '{}' must be name = value, as in workers = 4 or mode = \"ps\"", line_number, printable(line, 80)));
    }
    entries.emplace_back(std::string(name), std::move(*value));
  }
  return entries;
}

std::string to_toml(const ResolvedRun& config) {
  return file_of([&](const OptionSpec& option) { return option.has_effect(config) ? option.get(config) : ""; });
}

std::string to_toml(std::span<const ResolvedRun> configs) {
  const bool all_local = std::ranges::all_of(configs, [](const auto& config) { return !is_distributed(config); });
  return file_of([&](const OptionSpec& option) {
    if (option.of_mode || option.name == "launcher") return std::string();
    std::optional<std::string> shared;
    for (const ResolvedRun& config : configs) {
      if ((!is_distributed(config) && !all_local) || !option.has_effect(config)) continue;
      const std::string value = option.get(config);
      if (shared.value_or(value) != value) return std::string();
      shared = value;
    }
    return shared.value_or("");
  });
}

Result<ResolvedRun> from_toml_text(std::string_view text) {
  SYNCOPATE_ASSIGN_OR_RETURN(const GivenOptions given, given_in_file(text));
  SYNCOPATE_ASSIGN_OR_RETURN(const RunRequest recorded, apply_options(given));
  ResolvedRun config = presumed(recorded);
  SYNCOPATE_RETURN_IF_ERROR(check_effect(given, {config}));
  SYNCOPATE_RETURN_IF_ERROR(check(recorded));
  return config;
}

}  // namespace syncopate::experiments
