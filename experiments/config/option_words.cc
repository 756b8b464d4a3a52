#include "experiments/config/option_words.h"

#include <fmt/format.h>

#include <cctype>

#include "common/text/printable_text.h"

namespace syncopate::experiments {
namespace {

// "-0.1", "-.5" and "-5s" are values, right or wrong.
bool is_option(std::string_view word) {
  if (!word.starts_with('-')) return false;
  const std::size_t digit = word.substr(1).starts_with('.') ? 2 : 1;
  return digit >= word.size() || std::isdigit(static_cast<unsigned char>(word[digit])) == 0;
}

Status lacks_value(const std::string& name, const OptionForm& form, std::string_view next) {
  std::string line = fmt::format("--{0}: needs a value, as in --{0}={1}", name, form.placeholder);
  if (!next.empty()) line += fmt::format(" ({} is an option of its own)", printable(next));
  return Status::invalid_argument(line);
}

}  // namespace

Result<std::string> OptionWords::one(const std::string& name) const {
  const std::vector<std::string>& all = values.at(name);
  if (all.size() == 1) return all.front();
  return Status::invalid_argument(fmt::format("--{}: given {} times; once is enough", name, all.size()));
}

Result<OptionWords> option_words(std::span<const std::string> words, const OptionForms& forms) {
  OptionWords read;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!is_option(word)) {
      read.operands.push_back(word);
      continue;
    }
    const std::size_t equals = word.find('=');
    const auto form = word.starts_with("--") ? forms.find(word.substr(2, equals - 2)) : forms.end();
    if (form == forms.end()) {
      read.unknown.push_back(word);
      continue;
    }
    const auto& [name, takes] = *form;
    const bool is_last = i + 1 == words.size();
    std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (value.empty() && takes.placeholder.empty()) {
      value = "true";
    } else if (value.empty() && equals == std::string::npos && !is_last && !is_option(words[i + 1])) {
      value = words[++i];
    } else if (value.empty()) {
      value = takes.bare;
    }
    if (value.empty()) return lacks_value(name, takes, !is_last && is_option(words[i + 1]) ? words[i + 1] : "");
    read.values[name].push_back(std::move(value));
  }
  return read;
}

}  // namespace syncopate::experiments
