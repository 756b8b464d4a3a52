#include "experiments/config/options/conditions.h"
#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"

namespace syncopate::experiments {

using option_kinds::choice;
using option_kinds::flag;
using option_kinds::number;
using option_kinds::only;

using C = RunRequest;

void add_survival_options(std::vector<OptionSpec>& table) {
  const std::string group = "Survival";
  table.push_back(only(flag({.group = group,
                             .name = "elastic",
                             .sentence = "When a worker is lost, the others go on from the last step that all have "
                                         "finished, as a smaller group; without it, a lost worker ends the run."},
                            &C::elastic),
                       conditions::kGoesOnWithout));
  table.push_back(only(number({.group = group,
                               .name = "replicas",
                               .placeholder = "N",
                               .sentence = "Standbys of each server, which hold every update that a worker has had an "
                                           "answer to; one takes over when its server is lost.",
                               .unit = "processes"},
                              &C::replicas, "replicas", 0, 1),
                       conditions::kStandbys));
  table.push_back(only(number({.group = group,
                               .name = "respawn",
                               .placeholder = "SECONDS",
                               .sentence = "A worker, server or standby that is lost is started again after so "
                                           "long, and joins the others.",
                               .unit = "seconds",
                               .usual = "never"},
                              &C::respawn_seconds, "time", 0.0, 3600.0),
                       conditions::kRespawns));
  table.push_back(only(
      choice({.group = group,
              .name = "on-nan",
              .placeholder = "WHAT",
              .sentence = "When a loss, a gradient, a weight or the rate is NaN or infinite: stop ends the run, with "
                          "exit code 8, skip leaves the step out on all workers, go-on trains on. Which step, "
                          "worker and tensor was the first is said in any case."},
             &C::on_nan, "what follows a NaN", {OnNan::kStop, OnNan::kSkip, OnNan::kGoOn}),
      conditions::kOwnModel));
}

}  // namespace syncopate::experiments
