// The command `run_experiment doctor [--hosts=LIST] [--output=FILE.json]`: what is wrong with hosts that are to run a
// job, and what mends it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/status.h"

namespace syncopate::experiments {

struct DoctorAnswer {
  std::string text;
  bool is_well = false;  // nothing was found
};

// Examines the hosts, or this one, and writes the JSON of --output. `words` are those behind the program's name, the
// first is the command. Calls `shows` with what it does next. Fails with invalid argument for words that are wrong, and
// as NamespaceHosts::make does.
Result<DoctorAnswer> doctor_answer(const std::vector<std::string>& words,
                                   const std::function<void(const std::string&)>& shows);

}  // namespace syncopate::experiments
