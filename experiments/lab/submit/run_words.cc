#include "experiments/lab/submit/run_words.h"

#include "experiments/config/options/option_table.h"

namespace syncopate::experiments {

std::vector<std::string> run_words(const GivenOptions& given) {
  std::vector<std::string> words;
  for (const OptionSpec& option : option_table()) {
    const auto found = given.find(option.name);
    if (found == given.end() || option.name == "command") continue;
    words.push_back(as_typed(option, found->second));
  }
  return words;
}

}  // namespace syncopate::experiments
