#include "experiments/config/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/text/nearest_name.h"
#include "common/text/printable_text.h"
#include "experiments/config/compare_line.h"
#include "experiments/config/line_options.h"
#include "experiments/config/submit_line.h"

namespace syncopate::experiments {
namespace {

using Names = std::vector<std::string>;

Names with(Names names, const Names& more) {
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

// What a job is, beside its network and its size.
const Names kOfPredictions{"workers", "model",    "profile",      "batch-size",       "step-time",
                           "compute", "shape",    "cluster",      "workers-per-host", "inside",
                           "servers", "sharding", "price-worker", "price-server",     "output"};

Names names_of(const std::vector<OptionSpec>& options, bool (*takes)(const OptionSpec&)) {
  Names names;
  for (const OptionSpec& option : options) {
    if (takes(option)) names.push_back(option.name);
  }
  return names;
}

Names of_comparisons() {
  Names names;
  for (const CompareOption& option : kCompareOptions) names.emplace_back(option.name);
  names.emplace_back("vary");
  return names;
}

std::vector<Command> all_commands() {
  return {
      {.name = "compare",
       .operands = "[FOLDER...]",
       .sentence = "one job in several modes; finished runs side by side",
       .topic = "compare",
       .options = of_comparisons(),
       .has_run = true},
      {.name = "study",
       .operands = "[FILE]",
       .sentence = "modes over the values of options: scaling, crossovers",
       .topic = "study",
       .options = of_comparisons(),
       .has_run = true},
      {.name = "submit",
       .operands = "",
       .sentence = "what Slurm or Kubernetes takes to start a job",
       .topic = "submit",
       .options = names_of(submit_options(), [](const OptionSpec&) { return true; }),
       .has_run = true},
      {.name = "why",
       .operands = "FOLDER...",
       .sentence = "where the time of a finished run went",
       .topic = "why",
       .options = {"output", "device"}},
      {.name = "report",
       .operands = "FOLDER...",
       .sentence = "a page of a finished run or comparison, for a browser",
       .topic = "report",
       .options = {"output"}},
      {.name = "evaluate",
       .operands = "FOLDER|FILE",
       .sentence = "loss and accuracy of the weights of a run or a file",
       .topic = "evaluate",
       .options =
           with(names_of(option_table(), [](const OptionSpec& option) { return option.of_model; }), {"predictions"})},
      {.name = "demo",
       .operands = "[NAME|FILE]",
       .sentence = "a question, runs that answer it, and exercises",
       .topic = "demo",
       .options = {"check", "data-dir", "device", "output"}},
      {.name = "advise",
       .operands = "",
       .sentence = "the best way to run a job, simulated",
       .topic = "predictions",
       .has_page = true,
       .options = with(kOfPredictions, {"bucket-sizes", "memory", "optimizer", "goal", "search-events", "dataset",
                                        "classes", "context", "vocabulary", "image-size", "data-dir"})},
      {.name = "predict",
       .operands = "",
       .sentence = "a step's time in closed form, or its least on a device",
       .topic = "predictions",
       .has_page = true,
       .options = with(with(kOfPredictions, {"bucket-bytes", "simulate", "measured"}),
                       {kOfDeviceSteps.begin(), kOfDeviceSteps.end()})},
      {.name = "reproduce",
       .operands = "NAME",
       .sentence = "published measurements beside closed forms or small runs",
       .topic = "predictions",
       .has_page = true,
       .options = {"output", "data-dir"}},
      {.name = "profile",
       .operands = "",
       .sentence = "a model's step on this machine, measured to simulate it",
       .topic = "measurements",
       .options = {},
       .has_run = true},
      {.name = "calibrate",
       .operands = "",
       .sentence = "this machine and its wires, measured to simulate them",
       .topic = "measurements",
       .options = {},
       .has_run = true},
      {.name = "doctor",
       .operands = "",
       .sentence = "what is wrong with hosts, and what mends it",
       .topic = "doctor",
       .options = {"hosts", "hostfile", "cluster", "shape", "fabric", "remote-shell", "remote-program",
                   "listen-address", "timeout", "output"}},
      {.name = "ps",
       .operands = "",
       .sentence = "your runs that are under way on this host",
       .topic = "stop",
       .options = {}},
      {.name = "stop",
       .operands = "RUN",
       .sentence = "ends one of them, as Ctrl-C does",
       .topic = "stop",
       .options = {"timeout"}},
      {.name = "completion",
       .operands = "",
       .sentence = "a script by which bash completes commands and options",
       .topic = "completion",
       .options = {}},
  };
}

Status no_such_option(std::string_view command, std::span<const std::string> options, const std::string& word) {
  const std::string name = word.starts_with("--") ? word.substr(2, word.find('=') - 2) : word;
  const std::string nearest = nearest_name(name, {options.begin(), options.end()});
  const std::string there =
      options.empty() ? "it takes none" : fmt::format("there are --{}", fmt::join(options, ", --"));
  return Status::invalid_argument(fmt::format("{}: {}: no such option; {}{}", command, printable(word), there,
                                              nearest.empty() ? "" : fmt::format("; did you mean --{}?", nearest)));
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> all = all_commands();
  return all;
}

const Command* command_named(std::string_view name) {
  const auto found = std::ranges::find(commands(), name, &Command::name);
  return found == commands().end() ? nullptr : &*found;
}

Result<CommandWords> command_words(std::string_view command, std::span<const std::string> options,
                                   std::span<const std::string> words) {
  SYNCOPATE_ASSIGN_OR_RETURN(OptionWords read, option_words(words, forms_named(options)));
  if (!read.unknown.empty()) return no_such_option(command, options, read.unknown.front());
  CommandWords all{.operands = std::move(read.operands), .given = {}};
  for (const auto& [name, values] : read.values) {
    SYNCOPATE_ASSIGN_OR_RETURN(all.given[name], read.one(name));
  }
  return all;
}

Result<CommandWords> command_words(std::span<const std::string> words) {
  const Command& command = *command_named(words.front());
  SYNCOPATE_ASSIGN_OR_RETURN(CommandWords read, command_words(command.name, command.options, words.subspan(1)));
  if (command.operands.empty() && !read.operands.empty()) {
    return no_such_option(command.name, command.options, read.operands.front());
  }
  return read;
}

bool asks_for_help(std::span<const std::string> words) {
  return std::any_of(words.begin(), std::ranges::find(words, "--"), [](const std::string& word) {
    return word == "-h" || word == "--help" || word.starts_with("--help=");
  });
}

}  // namespace syncopate::experiments
