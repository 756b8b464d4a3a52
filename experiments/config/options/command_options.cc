#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "common/text/printable_text.h"
#include "experiments/config/options/option_groups.h"
#include "experiments/config/options/option_kinds.h"
#include "experiments/config/remote_shell.h"

namespace syncopate::experiments {
namespace {

struct OptionWithCommand {
  std::string_view name;
  std::string_view variable = {};  // as OptionSpec::variable
};

// Most else is decided by the program itself: its model, its data, its update, how long it trains. What only a
// simulated run of it can have, or no such run, its rules say (command_rules.cc).
constexpr OptionWithCommand kWithCommand[] = {{"mode", "SYNCOPATE_MODE"},
                                              {"consistency", "SYNCOPATE_CONSISTENCY"},
                                              {"servers", "SYNCOPATE_SERVERS"},
                                              {"transport", "SYNCOPATE_WIRE"},
                                              {"shape", "SYNCOPATE_SHAPE"},
                                              {"compress", "SYNCOPATE_COMPRESS"},
                                              {"chunk-bytes", "SYNCOPATE_BUCKET_BYTES"},
                                              {"bucket-bytes", "SYNCOPATE_BUCKET_BYTES"},
                                              {"seed", "SYNCOPATE_SEED"},
                                              {"timeout", "SYNCOPATE_TIMEOUT"},
                                              {"elastic", "SYNCOPATE_ELASTIC"},
                                              {"trace", "SYNCOPATE_TRACE"},
                                              {"launcher"},
                                              {"command"},
                                              {"workers"},
                                              {"environment"},
                                              {"target-accuracy"},
                                              {"repeat"},
                                              {"warmup-steps"},
                                              {"output"},
                                              {"dry-run"},
                                              {"cluster"},
                                              {"steps"},
                                              {"collective"},
                                              {"straggler"},
                                              {"compute"},
                                              {"processing"},
                                              {"inside"},
                                              {"network"},
                                              {"fabric"},
                                              {"hosts"},
                                              {"hostfile"},
                                              {"remote-shell"},
                                              {"remote-program"},
                                              {"listen-address"}};

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
    const auto* const found = std::ranges::find(kWithCommand, option.name, &OptionWithCommand::name);
    option.with_command = found != std::ranges::end(kWithCommand);
    if (option.with_command) option.variable = found->variable;
  }
}

}  // namespace syncopate::experiments
