#include "experiments/lab/evaluate/model_options.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "experiments/config/options/option_table.h"

namespace syncopate::experiments {
namespace {

constexpr std::array<std::string_view, 2> kOfThisMachine{"data-dir", "backend"};

}  // namespace

std::map<std::string, std::string> model_metadata(const ResolvedRun& config) {
  std::map<std::string, std::string> metadata{{"mode", name_of(config.mode)}};
  for (const OptionSpec& option : option_table()) {
    const bool is_of_model = option.of_model && std::ranges::find(kOfThisMachine, option.name) == kOfThisMachine.end();
    if (!is_of_model || !option.has_effect(config)) continue;
    if (const std::string value = option.get(config); !value.empty()) metadata[option.name] = value;
  }
  return metadata;
}

}  // namespace syncopate::experiments
