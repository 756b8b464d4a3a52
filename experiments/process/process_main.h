// The main function of a launched process: --role=R --rank=N --run=ID --rendezvous=ADDRESS.
#pragma once

namespace syncopate::experiments {

// Whether this command line is a launched process's.
bool is_process_command_line(int argc, const char* const* argv);

// Returns the process's exit code.
int process_main(int argc, const char* const* argv);

}  // namespace syncopate::experiments
