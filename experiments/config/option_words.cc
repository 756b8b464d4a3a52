#include "experiments/config/option_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "common/text/printable_text.h"
#include "experiments/config/commands.h"
#include "experiments/config/help_text.h"
#include "experiments/config/nearest_name.h"

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

OptionForms forms_of(std::span<const std::string> options) {
  const std::vector<OptionSpec> known = all_options();
  OptionForms forms;
  for (const std::string& name : options) {
    const auto spec = std::ranges::find(known, name, &OptionSpec::name);
    forms[name] = spec == known.end() || spec->placeholder.empty() ? OptionForm() : OptionForm{spec->placeholder, ""};
  }
  return forms;
}

Status no_such_option(std::string_view command, std::span<const std::string> options, const std::string& word) {
  const std::string name = word.starts_with("--") ? word.substr(2, word.find('=') - 2) : word;
  const std::string nearest = nearest_name(name, {options.begin(), options.end()});
  const std::string there =
      options.empty() ? "it takes none" : fmt::format("there are --{}", fmt::join(options, ", --"));
  return Status::invalid_argument(fmt::format("{}: {}: no such option; {}{}", command, printable(word), there,
                                              nearest.empty() ? "" : fmt::format("; did you mean --{}?", nearest)));
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

Result<CommandWords> command_words(std::string_view command, std::span<const std::string> options,
                                   std::span<const std::string> words) {
  SYNCOPATE_ASSIGN_OR_RETURN(OptionWords read, option_words(words, forms_of(options)));
  if (!read.unknown.empty()) return no_such_option(command, options, read.unknown.front());
  CommandWords all{.operands = std::move(read.operands), .given = {}};
  for (const auto& [name, values] : read.values) {
    SYNCOPATE_ASSIGN_OR_RETURN(all.given[name], read.one(name));
  }
  return all;
}

Result<CommandWords> command_words(std::span<const std::string> words) {
  const Command& command = *command_named(words.front());
  SYNCOPATE_ASSIGN_OR_RETURN(CommandWords read, command_words(command.name, command.options, words.subspan(1)));
  if (command.operands.empty() && !read.operands.empty()) {
    return no_such_option(command.name, command.options, read.operands.front());
  }
  return read;
}

bool asks_for_help(std::span<const std::string> words) {
  return std::any_of(words.begin(), std::ranges::find(words, "--"), [](const std::string& word) {
    return word == "-h" || word == "--help" || word.starts_with("--help=");
  });
}

}  // namespace syncopate::experiments
