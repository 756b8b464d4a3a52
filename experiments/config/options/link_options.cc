#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"

namespace syncopate::experiments {
namespace {

OptionSpec shape() {
  OptionSpec option{.group = "Job",
                    .name = "shape",
                    .placeholder = "RATE[+DELAY]",
                    .sentence =
                        "Emulates a network: gives each process a full-duplex link of this rate each way, whose "
                        "messages take DELAY more.",
                    .range = LinkShape::forms(),
                    .usual = "none",
                    .is_text = true};
  option.set = [option](RunConfig& config, const std::string& value) -> Status {
    const Result<LinkShape> parsed = LinkShape::parse(value);
    if (!parsed.ok()) return option_kinds::wrong(option, value, "link");
    config.shape = *parsed;
    return {};
  };
  option.get = [](const RunConfig& config) { return config.shape ? config.shape->to_string() : std::string(); };
  return option;
}

}  // namespace

void add_link_options(std::vector<OptionSpec>& table) {
  table.push_back(option_kinds::only(shape(), "--mode=ps or --mode=allreduce", is_distributed));
}

}  // namespace syncopate::experiments
