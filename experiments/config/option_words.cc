#include "experiments/config/option_words.h"

#include <fmt/format.h>

#include <cctype>
#include <string_view>

#include "common/text/printable_text.h"

namespace syncopate::experiments {
namespace {

// "-0.1", "-.5" and "-5s" are values, right or wrong.
bool is_option(std::string_view word) {
  if (!word.starts_with('-')) return false;
  const std::size_t digit = word.substr(1).starts_with('.') ? 2 : 1;
  return digit >= word.size() || std::isdigit(static_cast<unsigned char>(word[digit])) == 0;
}

Status lacks_value(const std::string& name, const ValueForm& form, std::string_view next) {
  std::string line = fmt::format("--{0}: needs a value, as in --{0}={1}", name, form.placeholder);
  if (!next.empty()) line += fmt::format(" ({} is an option of its own)", printable(next));
  return Status::invalid_argument(line);
}

}  // namespace

Result<std::vector<std::string>> with_values_joined(std::span<const std::string> words,
                                                    const std::map<std::string, ValueForm>& forms) {
  std::vector<std::string> joined;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    const bool has_value = equals != std::string::npos && equals + 1 < word.size();
    const auto form = word.starts_with("--") ? forms.find(word.substr(2, equals - 2)) : forms.end();
    if (form == forms.end() || has_value) {
      joined.push_back(word);
      continue;
    }
    const bool is_last = i + 1 == words.size();
    if (equals == std::string::npos && !is_last && !is_option(words[i + 1])) {
      joined.push_back(fmt::format("{}={}", word, words[++i]));
    } else if (!form->second.bare.empty()) {
      joined.push_back(fmt::format("--{}={}", form->first, form->second.bare));
    } else {
      return lacks_value(form->first, form->second, !is_last && is_option(words[i + 1]) ? words[i + 1] : "");
    }
  }
  return joined;
}

}  // namespace syncopate::experiments
