#include "experiments/config/options/conditions.h"
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
                        "messages take DELAY more. Of a cluster of namespaces or a simulated one: each host's link.",
                    .range = LinkShape::forms(),
                    .usual = "none",
                    .is_text = true};
  option.set = [option](RunRequest& request, const std::string& value) -> Status {
    const Result<LinkShape> parsed = LinkShape::parse(value);
    if (!parsed.ok()) return option_kinds::wrong(option, value, "link");
    request.shape = *parsed;
    return {};
  };
  option.get = [](const ResolvedRun& config) { return config.shape ? config.shape->to_string() : std::string(); };
  return option;
}

}  // namespace

void add_link_options(std::vector<OptionSpec>& table) {
  table.push_back(option_kinds::only(shape(), conditions::kDistributed));
}

}  // namespace syncopate::experiments
