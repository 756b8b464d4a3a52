// Waits for hosts that come up only now, as pods and rented machines do.
#pragma once

#include <string>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "experiments/config/remote_shell.h"

namespace syncopate::experiments {

// Runs `true` on each host through the remote shell, again and again, until it has succeeded once on each. Fails with
// invalid argument once `longest` is over, naming each host that was not reached and the shell's last line about it.
Status wait_for_hosts(const RemoteShell& shell, std::vector<std::string> hosts, Duration longest);

}  // namespace syncopate::experiments
