// The command line of `submit`, which hands a run to a scheduler: turns its words into a Submission and the run that it
// starts. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/config/command_line.h"
#include "experiments/config/options/option_table.h"

namespace syncopate::experiments {

// The options that submit alone takes, by their names without dashes, as they were typed.
using SubmitWords = std::map<std::string, std::string>;

// Returns what --help shows of these options; their names are those that SubmitWords may have.
std::vector<OptionSpec> submit_options();

// Returns whether what is printed for this submission has the option's value, wherever it is given. Others are refused.
bool passes_on(const Submission& submission, const OptionSpec& option);

// Returns of how many processes, workers and servers, the run consists: each is a task of Slurm's.
int tasks_of(const RunRequest& run);

// Returns the hosts that the scheduler will give to this many workers, by the names under which the coordinator reaches
// them: of each as many slots as it is to have workers. None for one pod of a trainer. Slurm's names are not known yet:
// others stand for them.
std::vector<HostSlots> hosts_of(const Submission& submission, int workers);

// Returns the submission that `words` ask for. The run has the options `given`, and hosts_of() for hosts, which
// `given` of the line does not name. Fails with invalid argument and one line that says what is wrong
// and what would be right: for a value that the target would refuse, and for a run that could not start there.
Result<CommandLine> submit_line(const GivenOptions& given, const SubmitWords& words);

}  // namespace syncopate::experiments
