#include <fmt/format.h>

#include "experiments/config/command_line.h"
#include "experiments/config/option_table.h"

namespace syncopate::experiments {
namespace {

constexpr std::string_view kHead =
    "Syncopate trains one job under parameter servers or allreduce and measures both on the same footing.\n"
    "\n"
    "  run_experiment [FLAGS]                         one job\n"
    "  run_experiment compare [--modes=LIST] [FLAGS]  the same job in several modes, side by side\n";

constexpr std::string_view kTail =
    "\n"
    "Config file\n"
    "  --config=FILE\n"
    "      Reads the same names without dashes from a TOML file, as in workers = 4; flags on the command line win.\n"
    "      Each run leaves such a file, config.toml, in its results.\n"
    "  --help\n"
    "      Shows this text.\n"
    "\n"
    "compare\n"
    "  --modes=LIST\n"
    "      What to compare; local gets the batch of all workers together. In place of --mode, --consistency,\n"
    "      --collective, --sync-every and --gossip.\n"
    "      [local, allreduce, allreduce:mpi, allreduce:sync-every:k, allreduce:gossip:k, ps:sync, ps:bounded:k, "
    "ps:async; default {}]\n"
    "  --vary=OPTION=LIST\n"
    "      Each mode with each of these values of one option; a mode in which it has no effect is run once, and a\n"
    "      combination that cannot run is left out, saying why.\n"
    "      [as in --vary=batch-size=32,64,128]\n"
    "\n"
    "Examples\n"
    "  run_experiment --model=softmax --epochs=1\n"
    "  run_experiment --mode=allreduce --workers=2 --repeat=5\n"
    "  run_experiment --mode=ps --workers=4 --servers=2 --consistency=bounded:4 --target-accuracy=0.97\n"
    "  run_experiment --mode=allreduce --collective=mpi --launcher=mpirun --workers=2\n"
    "  run_experiment compare --workers=2 --modes=allreduce,ps:async\n"
    "  run_experiment compare --modes=allreduce,ps:sync --vary=workers=1,2,4\n"
    "  run_experiment --config=results/20261120-135501-ps-async/config.toml\n";

// "[processes; 1 to 64; default 2]"
std::string facts(const OptionSpec& option) {
  std::string text = "[";
  for (const std::string& part : {option.unit, option.range}) {
    if (!part.empty()) text += part + "; ";
  }
  return text + "default " + (option.placeholder.empty() ? "off" : option.usual) + "]";
}

}  // namespace

std::string help_text() {
  std::string text(kHead);
  std::string group;
  for (const OptionSpec& option : option_table()) {
    if (option.group != group) text += fmt::format("\n{}\n", option.group);
    group = option.group;
    text += fmt::format("  --{}{}{}\n", option.name, option.placeholder.empty() ? "" : "=", option.placeholder);
    text += fmt::format("      {}", option.sentence);
    if (!option.only_with.empty()) text += fmt::format(" Only with {}.", option.only_with);
    if (!option.excludes.empty()) text += fmt::format(" Not beside --{}.", option.excludes);
    text += fmt::format("\n      {}\n", facts(option));
  }
  return text + fmt::format(kTail, kUsualModes);
}

}  // namespace syncopate::experiments
