#include "experiments/lab/why/why_line.h"

#include <fmt/format.h>

#include "common/os/whole_file.h"
#include "experiments/config/commands.h"
#include "experiments/lab/why/explained_run.h"
#include "experiments/lab/why/why_text.h"

namespace syncopate::experiments {

Result<std::string> why_answer(const std::vector<std::string>& words) {
  SYNCOPATE_ASSIGN_OR_RETURN(const auto read, command_words(words));
  const auto& [folders, given] = read;
  if (folders.empty() || folders.size() > 2) {
    return Status::invalid_argument(fmt::format(
        "why: needs the folder of a finished run, as results/NAME, or two of them; {} were given", folders.size()));
  }
  std::vector<ExplainedRun> runs;
  for (const std::string& folder : folders) {
    SYNCOPATE_ASSIGN_OR_RETURN(ExplainedRun run, explain_run(folder));
    runs.push_back(std::move(run));
  }
  const bool is_one = runs.size() == 1;
  std::string text = is_one ? why_text(runs[0]) : difference_text(runs[0], runs[1]);
  const auto output = given.find("output");
  if (output == given.end()) return text;
  SYNCOPATE_RETURN_IF_ERROR(
      write_whole_file(output->second, is_one ? why_json(runs[0]) : difference_json(runs[0], runs[1])));
  return text + fmt::format("\nJSON in {}\n", output->second);
}

}  // namespace syncopate::experiments
