#include "experiments/lab/why/why_line.h"

#include <fmt/format.h>

#include <optional>

#include "common/os/whole_file.h"
#include "experiments/config/commands.h"
#include "experiments/config/device_choice.h"
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
  std::optional<prediction::DeviceRates> device;
  if (const auto named = given.find("device"); named != given.end()) {
    SYNCOPATE_ASSIGN_OR_RETURN(device, open_device(named->second));
  }
  std::vector<ExplainedRun> runs;
  for (const std::string& folder : folders) {
    SYNCOPATE_ASSIGN_OR_RETURN(ExplainedRun run, explain_run(folder, device ? &*device : nullptr));
    if (device && !run.pace.on_device) {
      return Status::invalid_argument(
          fmt::format("--device={}: {} computed on processors, and no data sheet is of these; leave it out",
                      given.at("device"), folder));
    }
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
