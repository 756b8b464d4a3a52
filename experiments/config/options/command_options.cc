#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "common/text/printable_text.h"
#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"
#include "experiments/config/remote_shell.h"

namespace syncopate::experiments {
namespace {

// Most else is decided by the program itself: its model, its data, its update, how long it trains. What --cluster is
// refused with, its rule says.
constexpr std::string_view kWithCommand[] = {
    "mode",         "launcher",       "command",        "workers",      "transport",       "shape",      "compress",
    "servers",      "consistency",    "chunk-bytes",    "bucket-bytes", "target-accuracy", "seed",       "repeat",
    "warmup-steps", "timeout",        "output",         "dry-run",      "cluster",         "hosts",      "hostfile",
    "remote-shell", "remote-program", "listen-address", "trace",        "elastic",         "environment"};

}  // namespace

void add_command_option(std::vector<OptionSpec>& table) {
  OptionSpec option{.group = "Job",
                    .name = "command",
                    .placeholder = "WORDS",
                    .sentence =
                        "A program of your own that each worker runs, such as a PyTorch script that uses "
                        "syncopate.torch; the same as these words behind -- at the end of the line.",
                    .range = "words, quoted as for a shell",
                    .usual = "Syncopate's own worker",
                    .is_text = true};
  option.set = [option](RunRequest& request, const std::string& value) -> Status {
    Result<std::vector<std::string>> words = split_words(value);
    if (!words.ok() || words->empty()) return option_kinds::wrong(option, value, "command");
    if (option_kinds::has_control_characters(value)) {
      return Status::invalid_argument(fmt::format(
          "--command={}: has a line break or another control character, which the run's record cannot hold; put "
          "the program into a file",
          printable(value)));
    }
    request.command = std::move(*words);
    return {};
  };
  option.get = [](const ResolvedRun& config) { return command_of(config); };
  table.push_back(std::move(option));
}

void mark_options_with_command(std::vector<OptionSpec>& table) {
  for (OptionSpec& option : table) {
    option.with_command = std::ranges::find(kWithCommand, option.name) != std::ranges::end(kWithCommand);
  }
}

}  // namespace syncopate::experiments
