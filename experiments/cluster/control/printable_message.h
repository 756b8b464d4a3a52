// Makes messages of processes safe before any of their text reaches a terminal, a log or a page: the processes may be
// on other hosts, or may not be what they claim.
#pragma once

#include "experiments/cluster/control/control.pb.h"

namespace syncopate::experiments {

// Makes every text of the message printable (common/text/printable_text.h), and at most as long as a path may be. Texts
// that are compared or parsed and never shown stay unchanged: names of runs and of rendezvous groups, and parts of
// manifests.
void make_printable(control::ToCoordinator& message);

}  // namespace syncopate::experiments
