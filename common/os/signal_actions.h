// What signals do to this process and to the programs that it starts.
#pragma once

#include <signal.h>

namespace syncopate {

// Whether the signal is ignored: nohup, and `&` in a script, have a program start so, and it is to stay so.
bool is_ignored(int signal_number);

// Ignores the signals by which the kernel ends a process whose write fails anyway, so that the write says why: SIGPIPE,
// where nobody reads any more, and SIGXFSZ, where a file would become larger than `ulimit -f` allows. For the beginning
// of main.
void let_writes_fail();

// Returns which of the two get their default action in a program that this one starts: SIGPIPE always, since a remote
// shell ends by it, and SIGXFSZ unless it was ignored before let_writes_fail().
sigset_t default_in_programs();

// Gives them that action in this process, which is about to become such a program. Safe after fork().
void take_default_actions(const sigset_t& signals);

}  // namespace syncopate
