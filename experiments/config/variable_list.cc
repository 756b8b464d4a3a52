#include "experiments/config/variable_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "common/text/printable_text.h"

namespace syncopate::experiments {
namespace {

// Takes the text up to the next comma that has no backslash before it, with the comma.
std::string_view take_entry(std::string_view& text) {
  std::size_t end = 0;
  while (end < text.size() && text[end] != ',') end += text[end] == '\\' ? 2 : 1;
  end = std::min(end, text.size());
  const std::string_view entry = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return entry;
}

std::string without_backslashes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    plain += text[i];
  }
  return plain;
}

std::string with_backslashes(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == ',' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

bool is_variable_name(std::string_view name) {
  const auto allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::ranges::all_of(name, allowed);
}

bool is_control(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

}  // namespace

Result<VariableList> parse_variables(std::string_view text, std::string_view prefix) {
  VariableList variables;
  do {
    const std::string_view entry = take_entry(text);
    const std::size_t equals = std::min(entry.find('='), entry.size());
    const std::string name(entry.substr(0, equals));
    if (!is_variable_name(name) || !name.starts_with(prefix) || name.size() == prefix.size()) {
      return Status::invalid_argument(
          fmt::format("'{}' must be a name of letters, digits and underscores{}; in a value, a comma has a backslash "
                      "before it",
                      printable(name), prefix.empty() ? "" : fmt::format(" that begins with {}", prefix)));
    }
    if (equals == entry.size()) {
      return Status::invalid_argument(fmt::format("{} lacks its value, as in {}=1", name, name));
    }
    if (std::ranges::any_of(entry, is_control)) {
      return Status::invalid_argument(fmt::format(
          "{}: its value has a line break or another control character, which the run's record cannot hold", name));
    }
    if (std::ranges::find(variables, name, &VariableList::value_type::first) != variables.end()) {
      return Status::invalid_argument(fmt::format("{} is given twice; once is enough", name));
    }
    variables.emplace_back(name, without_backslashes(entry.substr(equals + 1)));
  } while (!text.empty());
  return variables;
}

std::string to_text(const VariableList& variables) {
  std::string text;
  for (const auto& [name, value] : variables) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, with_backslashes(value));
  }
  return text;
}

Result<std::string> with_values_of(const Variables& environment, std::string_view text) {
  std::string settled;
  do {
    const std::string_view entry = take_entry(text);
    settled += fmt::format("{}{}", settled.empty() ? "" : ",", entry);
    if (entry.find('=') != std::string_view::npos || !is_variable_name(entry)) continue;
    const auto found = environment.find(entry);
    if (found == environment.end()) {
      return Status::invalid_argument(fmt::format("{} is not set here; set it, or give {}=VALUE", entry, entry));
    }
    settled += "=" + with_backslashes(found->second);
  } while (!text.empty());
  return settled;
}

void set_variables(VariableList& variables, const VariableList& more) {
  for (const auto& [name, value] : more) {
    const auto found = std::ranges::find(variables, name, &VariableList::value_type::first);
    if (found == variables.end()) {
      variables.emplace_back(name, value);
    } else {
      found->second = value;
    }
  }
}

}  // namespace syncopate::experiments
