// The kinds of options in the table: a number in a range, one of a few names, a text. Each function takes an option's
// descriptions and returns the option with its checks, its default and its conversion back to text.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/text/number.h"
#include "experiments/config/options/option_table.h"

namespace syncopate::experiments::option_kinds {

// Returns the error "--NAME=VALUE: NOUN must be RANGE".
inline Status wrong(const OptionSpec& option, const std::string& value, const std::string& noun) {
  return Status::invalid_argument(fmt::format("--{}={}: {} must be {}", option.name, value, noun, option.range));
}

// Returns "a, b or c".
inline std::string any_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

// Makes a number in [low, high]. `noun` names it in the error message.
template <typename T>
OptionSpec number(OptionSpec option, T RunConfig::*field, const std::string& noun, T low, T high) {
  if (option.range.empty()) option.range = fmt::format("{} to {}", low, high);
  if (option.usual.empty()) option.usual = fmt::format("{}", RunConfig().*field);
  option.set = [option, field, noun, low, high](RunConfig& config, const std::string& text) -> Status {
    const std::optional<T> value = parse_number<T>(text);
    // This form rejects NaN, too.
    if (!value || !(*value >= low && *value <= high)) return wrong(option, text, noun);
    config.*field = *value;
    return {};
  };
  option.get = [field](const RunConfig& config) { return fmt::format("{}", config.*field); };
  return option;
}

// Makes a choice among `values`, by the names that name_of gives them.
template <typename E>
OptionSpec choice(OptionSpec option, E RunConfig::*field, const std::string& noun, std::vector<E> values) {
  option.is_text = true;
  option.usual = name_of(RunConfig().*field);
  std::vector<std::string> names;
  for (const E value : values) names.emplace_back(name_of(value));
  option.range = any_of(names);
  option.set = [option, field, noun, values](RunConfig& config, const std::string& text) -> Status {
    for (const E value : values) {
      if (text != name_of(value)) continue;
      config.*field = value;
      return {};
    }
    return wrong(option, text, noun);
  };
  option.get = [field](const RunConfig& config) { return std::string(name_of(config.*field)); };
  return option;
}

// Makes a switch: it is given, or it is not.
inline OptionSpec flag(OptionSpec option, bool RunConfig::*field) {
  option.set = [name = option.name, field](RunConfig& config, const std::string& value) -> Status {
    if (value != "true") {
      return Status::invalid_argument(
          fmt::format("--{0}={1}: takes no value; give --{0}, or leave it out", name, value));
    }
    config.*field = true;
    return {};
  };
  option.get = [field](const RunConfig& config) { return std::string(config.*field ? "true" : ""); };
  return option;
}

// Makes a switch whose value is "on" or "off".
inline OptionSpec on_or_off(OptionSpec option, bool RunConfig::*field, const std::string& noun) {
  const auto name_of = [](bool on) { return std::string(on ? "on" : "off"); };
  option.is_text = true;
  option.range = "on or off";
  option.usual = name_of(RunConfig().*field);
  option.set = [option, field, noun](RunConfig& config, const std::string& value) -> Status {
    if (value != "on" && value != "off") return wrong(option, value, noun);
    config.*field = value == "on";
    return {};
  };
  option.get = [field, name_of](const RunConfig& config) { return name_of(config.*field); };
  return option;
}

// Makes a text. If `allowed` is not empty, the text must be one of them.
inline OptionSpec text(OptionSpec option, std::string RunConfig::*field, const std::string& noun,
                       std::vector<std::string> allowed = {}) {
  option.is_text = true;
  if (option.usual.empty()) option.usual = RunConfig().*field;
  if (!allowed.empty()) option.range = any_of(allowed);
  option.set = [option, field, noun, allowed](RunConfig& config, const std::string& value) -> Status {
    const bool known = allowed.empty() || std::ranges::find(allowed, value) != allowed.end();
    const bool printable = std::ranges::none_of(value, [](char c) { return static_cast<unsigned char>(c) < ' '; });
    if (value.empty() || !known || !printable) return wrong(option, value, noun);
    config.*field = value;
    return {};
  };
  option.get = [field](const RunConfig& config) { return config.*field; };
  return option;
}

// Returns `option` with an effect only where `applies` returns true.
inline OptionSpec only(OptionSpec option, std::string only_with, bool (*applies)(const RunConfig&)) {
  option.only_with = std::move(only_with);
  option.applies = applies;
  return option;
}

// Returns `option` so that a zero in the config means "not given" and is not shown.
inline OptionSpec unless_zero(OptionSpec option) {
  option.get = [get = option.get](const RunConfig& config) {
    const std::string value = get(config);
    return value == "0" ? std::string() : value;
  };
  return option;
}

// Does the same for a value below zero, where zero has a meaning of its own.
inline OptionSpec unless_negative(OptionSpec option, double RunConfig::*field) {
  option.get = [get = option.get, field](const RunConfig& config) {
    return config.*field < 0 ? std::string() : get(config);
  };
  return option;
}

}  // namespace syncopate::experiments::option_kinds
