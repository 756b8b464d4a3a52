// What goes together with a program of the person's own (--command, or the words behind --).
#pragma once

#include "common/status.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// For check_rules(): returns what is wrong, and what would be right.
Status validate_command(const ResolvedRun& config);

}  // namespace syncopate::experiments
