#include "experiments/config/options/conditions.h"
#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"

namespace syncopate::experiments {

using option_kinds::flag;
using option_kinds::number;
using option_kinds::only;

using C = RunRequest;

void add_watch_options(std::vector<OptionSpec>& table) {
  const std::string group = "Run";
  table.push_back(flag({.group = group,
                        .name = "tensorboard",
                        .sentence = "Writes curves and histograms into event files below tensorboard/ of the results' "
                                    "folder, which TensorBoard opens while the run goes on (docs/watching.md)."},
                       &C::tensorboard));
  table.push_back(only(number({.group = group,
                               .name = "metrics",
                               .placeholder = "PORT",
                               .sentence = "Serves counters and gauges of the run at 127.0.0.1:PORT/metrics for "
                                           "Prometheus while it goes on; 0 takes a port that is free and shows it.",
                               .usual = "none"},
                              &C::metrics, "port", 0, 65535),
                       conditions::kRealHosts));
}

}  // namespace syncopate::experiments
