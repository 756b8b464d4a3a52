// Relay: the parent of a program of the person's own in a run on several hosts. It stands below a guard
// (process/guard.h), on whatever host the program runs, and passes on what the program prints and what it tells of its
// steps, since run_experiment cannot read files there. It gives the program the address of its host, rank 0's port, and
// the run's secret, and ends with all that the program has started when run_experiment does not need it any more.
//
//   syncopate --relay-command=ADDRESS --run=ID PROGRAM ARGUMENTS...
//
// ADDRESS is run_experiment's, as other hosts reach it. The relay reads the run's secret from standard input, as a
// line, and then what relay_protocol.h describes. The program's file of steps and the secret are files in memory, which
// only this user can open, and which end with the relay. Standard output is the relay's own; errors of its own go to
// standard error.
#pragma once

namespace syncopate::experiments {

bool is_relay_command_line(int argc, const char* const* argv);

// Returns the program's exit code; 128 plus the signal if one has killed it. The program has a single thread.
int relay_main(int argc, char** argv);

}  // namespace syncopate::experiments
