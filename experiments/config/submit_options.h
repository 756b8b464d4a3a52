// The options that submit takes beside those of the run: the one table from which its line and --help are made. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/config/options/option_table.h"
#include "experiments/config/submission.h"

namespace syncopate::experiments {

// What --help shows of an option, and how its value comes into the submission.
struct SubmitOption {
  OptionSpec spec;
  // Fails with invalid argument, and one line, for a value that the target would refuse.
  Status (*set)(Submission& submission, const std::string& text);
  std::optional<SubmitTarget> only;  // none: for any target
};

const std::vector<SubmitOption>& all_submit_options();

}  // namespace syncopate::experiments
