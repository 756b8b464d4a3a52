// The kinds of options in the table: a number in a range, one of a few names, a text. Each function takes an option's
// descriptions and returns the option with its checks, its default and its conversion back to text.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/text/nearest_name.h"
#include "common/text/number.h"
#include "common/text/quantity.h"
#include "experiments/config/options/option_table.h"

namespace syncopate::experiments::option_kinds {

// Returns the error "--NAME=VALUE: NOUN must be RANGE".
inline Status wrong(const OptionSpec& option, const std::string& value, const std::string& noun) {
  return Status::invalid_argument(fmt::format("--{}={}: {} must be {}", option.name, value, noun, option.range));
}

// The same for a value that must be one of `names`, with the one that was meant.
inline Status misspelt(const OptionSpec& option, const std::string& value, const std::string& noun,
                       const std::vector<std::string>& names) {
  const std::string nearest = nearest_name(value, names);
  if (nearest.empty()) return wrong(option, value, noun);
  return Status::invalid_argument(fmt::format("{}; did you mean {}?", wrong(option, value, noun).message(), nearest));
}

// Control characters have no meaning in any option, a config file can hold none, and messages show values.
inline bool has_control_characters(const std::string& value) {
  return std::ranges::any_of(value, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; });
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

// Checks a number in [low, high]; of seconds or bytes with a unit or without.
template <typename T>
Result<T> checked(const OptionSpec& option, const std::string& text, const std::string& noun, T low, T high) {
  if (const std::optional<T> value = parse_number<T>(text); value && *value >= low && *value <= high) return *value;
  const std::string hint = unit_hint(option.unit);
  if (hint.empty()) return wrong(option, text, noun);
  // This form rejects NaN, too, and a part of a byte.
  if (const std::optional<double> value = parse_in_unit(text, option.unit);
      value && *value >= static_cast<double>(low) && *value <= static_cast<double>(high) &&
      static_cast<double>(static_cast<T>(*value)) == *value) {
    return static_cast<T>(*value);
  }
  return Status::invalid_argument(
      fmt::format("--{}={}: {} must be {} ({}{})", option.name, text, noun, option.range, option.unit, hint));
}

// Makes a number in [low, high] that has a default. `noun` names it in the error message.
template <typename T>
OptionSpec number(OptionSpec option, T RunSettings::*field, const std::string& noun, T low, T high) {
  if (option.range.empty()) option.range = fmt::format("{} to {}", low, high);
  if (option.usual.empty()) option.usual = fmt::format("{}", RunSettings().*field);
  option.set = [option, field, noun, low, high](RunRequest& request, const std::string& text) -> Status {
    const Result<T> value = checked(option, text, noun, low, high);
    if (!value.ok()) return value.status();
    request.*field = *value;
    return {};
  };
  option.get = [field](const ResolvedRun& run) { return fmt::format("{}", run.*field); };
  return option;
}

// Makes a number in [low, high] that a run may be without.
template <typename T>
OptionSpec number(OptionSpec option, std::optional<T> RunSettings::*field, const std::string& noun, T low, T high) {
  if (option.range.empty()) option.range = fmt::format("{} to {}", low, high);
  if (option.usual.empty() && RunSettings().*field) option.usual = fmt::format("{}", *(RunSettings().*field));
  option.set = [option, field, noun, low, high](RunRequest& request, const std::string& text) -> Status {
    const Result<T> value = checked(option, text, noun, low, high);
    if (!value.ok()) return value.status();
    request.*field = *value;
    return {};
  };
  option.get = [field](const ResolvedRun& run) {
    return run.*field ? fmt::format("{}", *(run.*field)) : std::string();
  };
  return option;
}

// Makes a number in [low, high] that a request may leave open: `asked` in the request is `settled` in the run.
template <typename T>
OptionSpec number(OptionSpec option, std::optional<T> RunRequest::*asked, T ResolvedRun::*settled,
                  const std::string& noun, T low, T high) {
  option.range = fmt::format("{} to {}", low, high);
  option.set = [option, asked, noun, low, high](RunRequest& request, const std::string& text) -> Status {
    const Result<T> value = checked(option, text, noun, low, high);
    if (!value.ok()) return value.status();
    request.*asked = *value;
    return {};
  };
  option.get = [settled](const ResolvedRun& run) { return fmt::format("{}", run.*settled); };
  return option;
}

// Returns the choice among `values` that `text` names.
template <typename E>
std::optional<E> named(const std::vector<E>& values, const std::string& text) {
  const auto found = std::ranges::find_if(values, [&](E value) { return text == name_of(value); });
  return found == values.end() ? std::nullopt : std::optional(*found);
}

template <typename E>
std::vector<std::string> names_of(const std::vector<E>& values) {
  std::vector<std::string> names;
  for (const E value : values) names.emplace_back(name_of(value));
  return names;
}

// Makes a choice among `values`, by the names that name_of gives them.
template <typename E>
OptionSpec choice(OptionSpec option, E RunSettings::*field, const std::string& noun, std::vector<E> values) {
  option.is_text = true;
  option.usual = name_of(RunSettings().*field);
  option.range = any_of(names_of(values));
  option.set = [option, field, noun, values](RunRequest& request, const std::string& text) -> Status {
    const std::optional<E> value = named(values, text);
    if (!value) return misspelt(option, text, noun, names_of(values));
    request.*field = *value;
    return {};
  };
  option.get = [field](const ResolvedRun& run) { return std::string(name_of(run.*field)); };
  return option;
}

// Makes a choice that a request may leave open, which is called auto: `asked` in the request is `settled` in the run.
template <typename E>
OptionSpec choice_or_auto(OptionSpec option, std::optional<E> RunRequest::*asked, E ResolvedRun::*settled,
                          const std::string& noun, std::vector<E> values) {
  option.is_text = true;
  option.usual = "auto";
  std::vector<std::string> names = names_of(values);
  names.insert(names.begin(), "auto");
  option.range = any_of(names);
  option.set = [option, asked, noun, values](RunRequest& request, const std::string& text) -> Status {
    request.*asked = named(values, text);
    return request.*asked || text == "auto" ? Status() : wrong(option, text, noun);
  };
  option.get = [settled](const ResolvedRun& run) { return std::string(name_of(run.*settled)); };
  return option;
}

// Makes a switch: it is given, or it is not.
inline OptionSpec flag(OptionSpec option, bool RunSettings::*field) {
  option.set = [name = option.name, field](RunRequest& request, const std::string& value) -> Status {
    if (value != "true") {
      return Status::invalid_argument(
          fmt::format("--{0}={1}: takes no value; give --{0}, or leave it out", name, value));
    }
    request.*field = true;
    return {};
  };
  option.get = [field](const ResolvedRun& run) { return std::string(run.*field ? "true" : ""); };
  return option;
}

// Makes a switch whose value is "on" or "off".
inline OptionSpec on_or_off(OptionSpec option, bool RunSettings::*field, const std::string& noun) {
  const auto name_of = [](bool on) { return std::string(on ? "on" : "off"); };
  option.is_text = true;
  option.range = "on or off";
  option.usual = name_of(RunSettings().*field);
  option.set = [option, field, noun](RunRequest& request, const std::string& value) -> Status {
    if (value != "on" && value != "off") return wrong(option, value, noun);
    request.*field = value == "on";
    return {};
  };
  option.get = [field, name_of](const ResolvedRun& run) { return name_of(run.*field); };
  return option;
}

// Returns whether a text may be given: it is not empty, has no control characters, and is one of `allowed`, if any are.
inline bool may_be(const std::string& value, const std::vector<std::string>& allowed) {
  const bool known = allowed.empty() || std::ranges::find(allowed, value) != allowed.end();
  const bool printable = std::ranges::none_of(value, [](char c) { return static_cast<unsigned char>(c) < ' '; });
  return !value.empty() && known && printable;
}

// Makes a text. If `allowed` is not empty, the text must be one of them.
inline OptionSpec text(OptionSpec option, std::string RunSettings::*field, const std::string& noun,
                       std::vector<std::string> allowed = {}) {
  option.is_text = true;
  if (option.usual.empty()) option.usual = RunSettings().*field;
  if (!allowed.empty()) option.range = any_of(allowed);
  option.set = [option, field, noun, allowed](RunRequest& request, const std::string& value) -> Status {
    if (!may_be(value, allowed)) return wrong(option, value, noun);
    request.*field = value;
    return {};
  };
  option.get = [field](const ResolvedRun& run) { return run.*field; };
  return option;
}

// Makes a text that a run may be without.
inline OptionSpec text(OptionSpec option, std::optional<std::string> RunSettings::*field, const std::string& noun) {
  option.is_text = true;
  option.set = [option, field, noun](RunRequest& request, const std::string& value) -> Status {
    if (!may_be(value, {})) return wrong(option, value, noun);
    request.*field = value;
    return {};
  };
  option.get = [field](const ResolvedRun& run) { return (run.*field).value_or(""); };
  return option;
}

// Makes a text that a request may leave open: `asked` in the request is `settled` in the run.
inline OptionSpec text(OptionSpec option, std::optional<std::string> RunRequest::*asked,
                       std::string ResolvedRun::*settled, const std::string& noun) {
  option.is_text = true;
  option.set = [option, asked, noun](RunRequest& request, const std::string& value) -> Status {
    if (!may_be(value, {})) return wrong(option, value, noun);
    request.*asked = value;
    return {};
  };
  option.get = [settled](const ResolvedRun& run) { return run.*settled; };
  return option;
}

// Returns `option` with an effect only where `condition` holds.
inline OptionSpec only(OptionSpec option, const Condition& condition) {
  option.only = condition;
  return option;
}

}  // namespace syncopate::experiments::option_kinds
