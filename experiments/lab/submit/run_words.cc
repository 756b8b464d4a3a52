#include "experiments/lab/submit/run_words.h"

#include <fmt/format.h>

#include "experiments/config/options/option_table.h"

namespace syncopate::experiments {

std::vector<std::string> run_words(const GivenOptions& given) {
  std::vector<std::string> words;
  for (const OptionSpec& option : option_table()) {
    const auto found = given.find(option.name);
    if (found == given.end() || option.name == "command") continue;
    const bool is_switch = option.placeholder.empty() && found->second == "true";
    words.push_back(is_switch ? "--" + option.name : fmt::format("--{}={}", option.name, found->second));
  }
  return words;
}

}  // namespace syncopate::experiments
