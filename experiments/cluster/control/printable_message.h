// What processes say, before any of it reaches a terminal, a log or a page: their processes may be on other hosts, or
// not what they say they are.
#pragma once

#include "experiments/cluster/control/control.pb.h"

namespace syncopate::experiments {

// Makes every text of the message printable (common/text/printable_text.h), at most as long as a path may be. What is
// compared or parsed and never shown stays as it came: names of runs and of rendezvous groups, and parts of manifests.
void make_printable(control::ToCoordinator& message);

}  // namespace syncopate::experiments
