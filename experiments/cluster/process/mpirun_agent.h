// The program that mpirun calls in place of ssh, so that its daemon on another host is started like our own processes
// there: through the run's remote shell, below a guard, and with the run's keys on the shell's standard input.
//
//   mpirun ─► syncopate --mpirun-agent HOST orted ... ─► becomes: SHELL HOST "syncopate --guard
//     syncopate --lend-keys sh -c 'exec orted ...'" ─► orted ─► syncopate --role=worker ... --keys-shared
//
// mpirun ends with run_experiment (guard.h). The shell ends with mpirun, which ends the guard's standard input on the
// other host, and with it the guard and the daemon. The ranks die with their parent, the daemon.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "experiments/config/remote_shell.h"

namespace syncopate::experiments {

bool is_mpirun_agent_command_line(int argc, const char* const* argv);
// Returns, with an exit code like a shell's, only if the remote shell cannot be started.
int mpirun_agent_main(int argc, char** argv);

bool is_lend_keys_command_line(int argc, const char* const* argv);
// Shares the keys on standard input with the command in its arguments, which replaces this process.
int lend_keys_main(int argc, char** argv);

// Returns the variables in mpirun's environment that tell an agent which shell to use.
std::vector<std::pair<std::string, std::string>> environment_of_agent(const RemoteShell& shell);

}  // namespace syncopate::experiments
