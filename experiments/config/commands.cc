#include "experiments/config/commands.h"

#include <algorithm>

#include "experiments/config/submit_line.h"

namespace syncopate::experiments {
namespace {

using Names = std::vector<std::string>;

const Names kOfComparisons{"modes", "vary",         "rate-rule",    "tune-rate",
                           "jobs",  "price-worker", "price-server", "repeat-limit"};

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

std::vector<Command> all_commands() {
  return {
      {.name = "compare",
       .operands = "[FOLDER...]",
       .sentence = "one job in several modes; finished runs side by side",
       .topic = "compare",
       .options = kOfComparisons,
       .has_run = true},
      {.name = "study",
       .operands = "[FILE]",
       .sentence = "modes over the values of options: scaling, crossovers",
       .topic = "study",
       .options = kOfComparisons,
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
       .options = {"output"}},
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
       .options = with(kOfPredictions, {"bucket-sizes", "memory", "optimizer", "goal", "search-events"})},
      {.name = "predict",
       .operands = "",
       .sentence = "a step's time in closed form",
       .topic = "predictions",
       .options = with(kOfPredictions, {"bucket-bytes", "simulate", "measured"})},
      {.name = "reproduce",
       .operands = "NAME",
       .sentence = "published measurements beside closed forms or small runs",
       .topic = "predictions",
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

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> all = all_commands();
  return all;
}

const Command* command_named(std::string_view name) {
  const auto found = std::ranges::find(commands(), name, &Command::name);
  return found == commands().end() ? nullptr : &*found;
}

}  // namespace syncopate::experiments
