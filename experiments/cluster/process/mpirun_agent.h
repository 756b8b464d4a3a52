// What mpirun calls in the place of ssh, so that its daemon on another host is started as our own processes there are:
// through the run's remote shell, below a guard, and with the run's keys on the shell's standard input.
//
//   mpirun ─► syncopate --mpirun-agent HOST orted ... ─► becomes: SHELL HOST "syncopate --guard
//     syncopate --lend-keys sh -c 'exec orted ...'" ─► orted ─► syncopate --role=worker ... --keys-lent
//
// mpirun ends with run_experiment (guard.h). Its end is the shell's, the shell's end is that of its input on the other
// host, and with that the guard's and the daemon's; the ranks die with their parent, the daemon.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "experiments/config/remote_shell.h"

namespace syncopate::experiments {

bool is_mpirun_agent_command_line(int argc, const char* const* argv);
// Returns, with an exit code as a shell's, only if the remote shell cannot be started.
int mpirun_agent_main(int argc, char** argv);

bool is_lend_keys_command_line(int argc, const char* const* argv);
// Lends the keys that stand on standard input to the command behind it, which takes this process's place.
int lend_keys_main(int argc, char** argv);

// What tells an agent, in mpirun's environment, which shell to use.
std::vector<std::pair<std::string, std::string>> environment_of_agent(const RemoteShell& shell);

}  // namespace syncopate::experiments
