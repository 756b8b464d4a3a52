// What is passed on to other programs as it is: mpirun, NCCL, and whatever reads an environment.
#include <fmt/format.h>

#include <algorithm>

#include "common/text/printable_text.h"
#include "experiments/config/options/conditions.h"
#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"
#include "experiments/config/remote_shell.h"

namespace syncopate::experiments {
namespace {

constexpr const char* kHostsGroup = "Several hosts";

OptionSpec mpi_options() {
  OptionSpec option = option_kinds::text({.group = kHostsGroup,
                                          .name = "mpi-options",
                                          .placeholder = "WORDS",
                                          .sentence = "More options for mpirun, in front of what it starts.",
                                          .range = "words, quoted as for a shell",
                                          .usual = "none"},
                                         &RunRequest::mpi_options, "options of mpirun");
  option.set = [set = option.set, option](RunRequest& request, const std::string& value) -> Status {
    const Result<std::vector<std::string>> words = split_words(value);
    if (!words.ok() || words->empty()) return option_kinds::wrong(option, value, "options of mpirun");
    if (std::ranges::find(*words, ":") != words->end()) {
      return Status::invalid_argument(fmt::format(
          "--mpi-options={}: a colon ends what one command has, and these are for all; leave it out", value));
    }
    return set(request, value);
  };
  return option;
}

OptionSpec variables(OptionSpec option, VariableList RunSettings::*field, const char* prefix) {
  option.is_text = true;
  option.is_list = true;
  option.usual = "none";
  option.set = [name = option.name, field, prefix](RunRequest& request, const std::string& value) -> Status {
    Result<VariableList> parsed = parse_variables(value, prefix);
    if (!parsed.ok()) return parsed.status().in(fmt::format("--{}={}", name, printable(value)));
    request.*field = std::move(*parsed);
    return {};
  };
  option.get = [field](const ResolvedRun& config) { return to_text(config.*field); };
  return option;
}

}  // namespace

void add_pass_through_options(std::vector<OptionSpec>& table) {
  table.push_back(option_kinds::only(
      variables({.group = kHostsGroup,
                 .name = "environment",
                 .placeholder = "NAME[=VALUE],...",
                 .sentence = "Environment variables of workers and servers, on all hosts; a name alone has the value "
                             "that it has here. The run's record has them, values too.",
                 .range = "names of letters, digits and underscores; \\, is a comma in a value"},
                &RunSettings::environment, ""),
      conditions::kStartsProcesses));
  table.push_back(option_kinds::only(mpi_options(), conditions::kByMpirun));
}

void add_nccl_options(std::vector<OptionSpec>& table) {
  table.push_back(option_kinds::only(variables({.group = "Allreduce",
                                                .name = "nccl-options",
                                                .placeholder = "NAME=VALUE,...",
                                                .sentence = "NCCL's own environment variables, in place of what "
                                                            "Syncopate would set.",
                                                .range = "names that begin with NCCL_, as in NCCL_ALGO=NVLS"},
                                               &RunSettings::nccl_options, "NCCL_"),
                                     conditions::kByNccl));
}

}  // namespace syncopate::experiments
