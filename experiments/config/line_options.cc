#include "experiments/config/line_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "experiments/config/comparison.h"
#include "experiments/config/preset.h"
#include "experiments/config/started_by/task_options.h"
#include "experiments/config/submit_line.h"
#include "prediction/device_rates.h"

namespace syncopate::experiments {
namespace {

// Returns "ps:sync, ps:bounded:k" and so on: each consistency as compare takes it.
std::string ps_modes() {
  std::vector<std::string> modes = ps::consistency_usages([](const ps::ConsistencyTraits&) { return true; });
  for (std::string& mode : modes) mode.insert(0, "ps:");
  return fmt::to_string(fmt::join(modes, ", "));
}

std::string preset_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, text] : preset_texts()) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string device_list() {
  std::vector<std::string> names;
  for (const prediction::DeviceRates& device : prediction::known_devices()) names.push_back(device.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::vector<OptionSpec> options_beside_a_run() {
  return {
      {.group = "Run",
       .name = "config",
       .placeholder = "FILE",
       .sentence = "Reads the same names without dashes from a TOML file, as in workers = 4; flags on the command line "
                   "win. Each run leaves such a file, config.toml, in its results.",
       .range = "a file that can be read",
       .usual = "none"},
      {.group = "Run",
       .name = "like",
       .placeholder = "PRESET",
       .sentence = "Sets what is not given as a known system has it, and says what is the same then and what is not. A "
                   "file of your own has about, same.TOPIC, differs.TOPIC and options by name. In compare and study a "
                   "mode: --modes=like:horovod,like:tf-ps.",
       .range = preset_names() + ", or a file that ends in .toml",
       .usual = "none"},
      {.group = "Run",
       .name = "plot",
       .sentence = "Draws the curves below the summary, in the terminal: accuracy and loss over time; of compare and "
                   "study all charts of their page. NO_COLOR is respected; where the locale is not UTF-8, letters "
                   "stand for lines."},
      {.group = "Run",
       .name = "help",
       .placeholder = "TOPIC",
       .sentence = "Shows how to begin; of a topic or an option, all about it.",
       .range = "a topic, an option or all",
       .usual = "the first page",
       .bare = kFirstPage},
      {.group = "Run",
       .name = "version",
       .sentence = "Shows the version, what this program was built of, and with which libraries."},
      started_by_option(),
  };
}

std::vector<OptionSpec> options_of_commands() {
  return {
      {.group = "compare",
       .name = "modes",
       .placeholder = "LIST",
       .sentence = "What to compare; local gets the batch of all workers together. In place of --mode, --consistency, "
                   "--collective, --sync-every, --gossip, --stage, --gather, --pipeline and --tensor.",
       .range = "all (each kind that the job can run), local, allreduce, allreduce:mpi, allreduce:sync-every:k, "
                "allreduce:gossip:k, allreduce:gossip-async:k, allreduce:pipeline:s, allreduce:tensor:t, "
                "allreduce:pipeline:s:tensor:t, sharded:1, sharded:2, sharded:3, sharded:on-demand, hybrid, " +
                ps_modes() + ", one of ps behind which stands pipeline:s, like:PRESET (--help=like)",
       .usual = std::string(kUsualModes)},
      {.group = "compare",
       .name = "vary",
       .placeholder = "OPTION=LIST",
       .sentence = "Each mode with each of these values of one option, none, default, true and false among them; given "
                   "several times, with each combination. A mode in which it has no effect is run once, and what "
                   "cannot run is left out, saying why.",
       .range = "as in --vary=batch-size=32,64,128; between semicolons where values have commas, as in "
                "'--vary=straggler=none;0:2x,1:2x'",
       .usual = "nothing is varied"},
      {.group = "compare",
       .name = "rate-rule",
       .placeholder = "RULE",
       .sentence = "What --learning-rate is of. per-sample: of a synchronous update of all workers, and a row whose "
                   "updates learn from a part of its samples trains with that part of it, so that rate x updates a "
                   "pass is the same in all rows. per-update: of each row's own updates.",
       .range = "per-sample or per-update",
       .usual = "per-sample"},
      {.group = "compare",
       .name = "repeat=auto",
       .placeholder = "",
       .sentence = "Rounds (--repeat) until each row is told from the first and from the fastest, or is shown to be "
                   "within 2 % of it, or within what --repeat=auto:1% says; at least 5 and at most 30, unless "
                   "--repeat-limit ends them. A simulation that draws nothing has two. compare has it unless --repeat "
                   "or --vary is given.",
       .usual = "as many as --repeat says, 1"},
      {.group = "compare",
       .name = "repeat-limit",
       .placeholder = "SECONDS",
       .sentence = "How long a command with --repeat=auto takes at most, its proof included and the trials of "
                   "--tune-rate not: no round begins that would not end by then, but for the first.",
       .unit = "seconds",
       .range = "1 to 86400",
       .usual = "60; none where --repeat=auto is given by name"},
      {.group = "study",
       .name = "jobs",
       .placeholder = "N",
       .sentence = "study, compare: how many runs are simulated at once, each in a process of its own. Real runs have "
                   "the machine to themselves, one after the other.",
       .unit = "runs",
       .range = "1 to 1024, with --cluster=simulated",
       .usual = "one for each core"},
      {.group = "compare",
       .name = "tune-rate",
       .placeholder = "GRID",
       .sentence =
           "First tries these learning rates for each row, a whole job each, with up to 3 seeds that the rounds "
           "do not have, and then measures with the one of the best final test quality.",
       .range = "2 to 20 rates, as in 0.01,0.03,0.1, read as --rate-rule says, or factors of each row's own, as in "
                "x0.25,x1,x4",
       .usual = "rows train with the rates that they have"},
      {.group = "study",
       .name = "to",
       .placeholder = "workers=LIST",
       .sentence = "study FOLDER...: predicts other numbers of workers from those that finished runs were measured "
                   "with. It then takes the options of predict.",
       .range = "as in --to=workers=64,256",
       .usual = "none: the study is run"},
      {.group = "Demonstrations",
       .name = "check",
       .placeholder = "FILE",
       .sentence = "demo NAME: holds these answers against the figures of the newest run of it, or of the one in "
                   "--output. It ends with 0 if all are right, with 7 otherwise.",
       .range = "a file of TOML with a line for each exercise",
       .usual = "none: the demonstration is run"},
      {.group = "Evaluate",
       .name = "predictions",
       .placeholder = "FILE",
       .sentence = "evaluate: writes what each image is taken for, as CSV: index, label, predicted class and its "
                   "probability.",
       .range = "a file that can be written",
       .usual = "none"},
      {.group = "Predictions",
       .name = "profile",
       .placeholder = "NAME",
       .sentence =
           "predict, advise: the model, by its tensors and their work; --model=NAME is the same. Beside what "
           "follows, both take lists of "
           "--workers, and --batch-size, --shape (a host's link) or --cluster=FILE, as calibrate writes it, "
           "--servers and --sharding=even or whole (each "
           "tensor in equal parts, or each variable on one server), of which advise takes lists, too; predict "
           "also --bucket-bytes (25000000) and --simulate, advise --optimizer (adam), and --model=gpt:4-8-256 or "
           "another "
           "that can be trained here, with its --dataset and what decides its samples. --output=DIR keeps a page "
           "(report.html) and all figures as CSV and JSON (prediction.csv, advice.csv and so on) there.",
       .range = "resnet50, vgg16, bert-large-128, gpt2 and others, which a wrong name lists; or a file that ends in "
                ".json, in the format of prediction/README.md",
       .usual = "none: it must be given"},
      {.group = "Predictions",
       .name = "step-time",
       .placeholder = "TIME",
       .sentence = "predict, advise: how long a step of one worker takes that exchanges nothing. A profile that "
                   "was measured has this and --batch-size; both together put another device's step in its place. "
                   "--compute=v100 takes the typical step of a known device in its place (--help=compute), and its "
                   "largest known batch unless --batch-size is given.",
       .unit = "seconds",
       .range = "0.000001 to 1000000",
       .usual = "none: it must be given"},
      {.group = "Predictions",
       .name = "workers-per-host",
       .placeholder = "N",
       .sentence = "predict, advise: how many workers share a host's link.",
       .unit = "workers",
       .range = "1 to 1024",
       .usual = "1"},
      {.group = "Predictions",
       .name = "simulate",
       .placeholder = "NETWORK",
       .sentence = "predict: puts beside each form a step of this project's own strategies in virtual time, over links "
                   "that are shared in this way (--help=network), for up to 64 workers: seconds for fifo, minutes for "
                   "others and large models.",
       .range = "off, fifo, frames or fluid",
       .usual = "off"},
      {.group = "Predictions",
       .name = "measured",
       .placeholder = "FILE|FOLDER,...",
       .sentence = "predict: goes by the throughput that two or three sizes have been measured to have, and tells what "
                   "others will have, with an interval. A CSV has the columns workers and samples_per_second or "
                   "step_ms, and mode, servers and batch_size where they are known; folders are of runs, comparisons "
                   "and studies, and say the model, the batch and, but on real hosts, the link. A size of one worker "
                   "takes the place of --step-time. study FOLDER --to=workers=64,256 is the same.",
       .range = "files and folders, with commas between them",
       .usual = "nothing: nominal figures"},
      {.group = "Predictions",
       .name = "device",
       .placeholder = "NAME|FILE",
       .sentence = "predict: the least time of a step of --model on this device, from the FLOPs and bytes of each "
                   "operation and the peak rates of its data sheet; beside --batch-size, --precision, --optimizer, "
                   "--dataset and what decides its samples. It is of one worker alone, and takes no --workers. why: "
                   "the device of a run whose GPU is none of these. A FILE has a line each of name, fp32, tf32, bf16 "
                   "or fp16 (19.5TFLOPS), bandwidth (2039GB/s), memory (80GB), launch (7us) and source.",
       .range = fmt::format("{}, or a file that ends in .toml", device_list()),
       .usual = "none: predict's forms of an exchange"},
      {.group = "Predictions",
       .name = "precision",
       .placeholder = "KIND",
       .sentence = "predict --device: of the step; bf16 and fp16 halve the bytes of activations and gradients, too.",
       .range = "fp32, tf32, bf16 or fp16, of those that the device has a rate for",
       .usual = "fp32"},
      {.group = "Predictions",
       .name = "price-worker",
       .placeholder = "PRICE",
       .sentence = "predict, advise: what a host with workers costs, in any currency, for what a million samples cost. "
                   "Servers on the same hosts cost nothing more. compare, study: what a worker costs, for what the "
                   "training costs, and the way to the target.",
       .unit = "currency for a host and hour",
       .range = "0 to 1000000000, beside --price-server",
       .usual = "none: no costs are shown"},
      {.group = "Predictions",
       .name = "price-server",
       .placeholder = "PRICE",
       .sentence = "predict, advise: the same for a host with a server alone. compare, study: for a server.",
       .unit = "currency for a host and hour",
       .range = "0 to 1000000000, beside --price-worker",
       .usual = "none: no costs are shown"},
      {.group = "Predictions",
       .name = "goal",
       .placeholder = "GOAL",
       .sentence = "advise: what is wanted: the most samples a second, or the cheapest samples.",
       .range = "fastest, or cheapest beside prices",
       .usual = "fastest"},
      {.group = "Predictions",
       .name = "search-events",
       .placeholder = "COUNT",
       .sentence =
           "advise: after how many events it simulates no further way to run, for each number of workers. The "
           "best of each kind by the forms come first; how many are left is said. Two million take about a second.",
       .range = "1 to 1000000000000",
       .usual = "50000000"},
      {.group = "Predictions",
       .name = "bucket-sizes",
       .placeholder = "LIST",
       .sentence = "advise: the sizes of allreduce's buckets to choose among; 0 reduces each tensor by itself.",
       .unit = "bytes",
       .range = "1 to 64 sizes, as 5000000, 5MB or 4MiB",
       .usual = "1MB,5MB,25MB,100MB"},
      {.group = "Predictions",
       .name = "memory",
       .placeholder = "SIZE",
       .sentence =
           "advise: of a host with workers. What needs more for weights, gradients and the optimizer's state is "
           "left out.",
       .unit = "bytes",
       .range = "1MB to 1000000GB, as 16GiB or 64GB",
       .usual = "none: no limit"},
  };
}

std::vector<OptionSpec> all_options() {
  std::vector<OptionSpec> all = option_table();
  for (auto* const more : {&options_beside_a_run, &options_of_commands, &submit_options}) {
    std::ranges::move(more(), std::back_inserter(all));
  }
  return all;
}

OptionForms forms_of(const std::vector<OptionSpec>& options) {
  OptionForms forms;
  for (const OptionSpec& option : options) forms[option.name] = {option.placeholder, option.bare};
  return forms;
}

OptionForms forms_named(std::span<const std::string> names) {
  OptionForms forms, known = forms_of(all_options());
  for (const std::string& name : names) forms.insert(known.extract(name));
  return forms;
}

}  // namespace syncopate::experiments
