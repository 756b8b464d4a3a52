// What simulated runs of a comparison are told of this machine: measured once, before the first run, and kept in files,
// so that all runs compute in the same times, wherever they are carried out, and also those after an interruption.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/lab/compare/planned_run.h"

namespace syncopate::experiments {

// Replaces --compute=solo and --processing=solo of simulated runs by what is measured now, or was before and lies in
// `folder`. `say` is called with what is about to be measured. A model whose tensors cannot be measured one by one (one
// with row-sparse tables) keeps --compute=solo.
Status measure_once(std::vector<PlannedRun>& runs, const std::string& folder,
                    const std::function<void(const std::string& what)>& say);

// Whether no run needs a measurement of its own.
bool all_are_measured(const std::vector<PlannedRun>& runs);

}  // namespace syncopate::experiments
