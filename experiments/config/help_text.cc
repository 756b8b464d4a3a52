#include "experiments/config/help_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "common/text/quantity.h"
#include "experiments/config/commands.h"
#include "experiments/config/comparison.h"
#include "experiments/config/nearest_name.h"
#include "experiments/config/options/option_table.h"
#include "experiments/config/preset.h"
#include "experiments/config/started_by/task_options.h"
#include "experiments/config/submit_line.h"
#include "experiments/config/wrapped_text.h"

namespace syncopate::experiments {
namespace {

constexpr int kFewestColumns = 40;

// Returns "ps:sync, ps:bounded:k" and so on: each consistency as compare takes it.
std::string ps_modes() {
  std::vector<std::string> modes = ps::consistency_usages([](const ps::ConsistencyTraits&) { return true; });
  for (std::string& mode : modes) mode.insert(0, "ps:");
  return fmt::to_string(fmt::join(modes, ", "));
}

struct Topic {
  std::string name;
  std::string group;                       // heading of the options that it lists
  std::vector<std::string> examples = {};  // each follows "run_experiment "
  std::string about = {};                  // of a topic whose commands have no options of their own: what they do
};

// The order is that in which people need them.
const std::vector<Topic>& topics() {
  static const std::vector<Topic> all = {
      {"job", "Job", {"--mode=allreduce --workers=2", "--mode=ps --workers=4 --straggler=3:4x --shape=1gbit"}},
      {"ps",
       "Parameter servers",
       {"--mode=ps --workers=4 --servers=2 --consistency=bounded:4",
        "--mode=ps --servers=3 --sharding=tensor --model=lenet --dry-run"}},
      {"allreduce",
       "Allreduce",
       {"--mode=allreduce --workers=4 --collective=ring",
        "--mode=allreduce --collective=mpi --launcher=mpirun --workers=2"}},
      {"simulation",
       "Simulated cluster",
       {"--cluster=simulated --mode=allreduce --workers=16 --compute=5ms",
        "compare --cluster=simulated --compute=5ms --modes=allreduce,ps:sync --vary=workers=4,16"}},
      {"measurements",
       "Measurements",
       {"profile --model=lenet --output=lenet.json", "calibrate --model=mlp --output=cluster.toml",
        "calibrate --hosts=node1,node2 --transport=sockets",
        "--cluster=simulated:cluster.toml --mode=allreduce --workers=16"},
       "profile times a step of a --model of ours, tensor by tensor, by one thread with nothing beside it, and writes "
       "a file (--output, MODEL.json) for --compute=FILE, --model=profile:FILE and predict. calibrate does that, "
       "measures "
       "sums, updates, codecs and each wire of this machine, or with --hosts=A,B the link between two, and writes "
       "cluster.toml (--output) for --cluster=simulated:FILE. Both take the options of the model and its data, and "
       "--batch-size; calibrate also --transport."},
      {"hosts",
       "Several hosts",
       {"--mode=ps --servers=2 --hosts=node1:2,node2:2", "--mode=allreduce --cluster=namespaces:4,link:100mbit",
        "compare --cluster=namespaces:2,link:100mbit -- python train.py"}},
      {"doctor",
       "Doctor",
       {"doctor --hosts=node1,node2,node3", "doctor --hostfile=nodes --output=doctor.json",
        "doctor --cluster=namespaces:3,link:100mbit"},
       "doctor asks hosts, or this one, what they have and what they let a process have: cores, open files, locked "
       "memory, MTU, clock, GPUs. It measures each pair of them by messages as a run sends them, and says what is "
       "wrong and what mends it. --timeout is how long it waits for a host or a pair (5 s unless given), and "
       "--output=FILE has all as JSON. It ends with 0 if all is well, with 7 otherwise."},
      {"stop",
       "Stop",
       {"ps", "stop first", "stop 4711 --timeout=10s"},
       "ps lists your runs that are under way on this host. stop asks one of them to end, as Ctrl-C does, and waits "
       "for "
       "that (--timeout, 60 s unless given); what was recorded is kept. A run is called by the last part of its folder "
       "of results, by that folder, or by its process id."},
      {"data", "Model and data", {"--model=softmax --epochs=1", "--model=gpt:2-4-64 --dataset=grammar"}},
      {"training", "Training", {"--optimizer=sgd --learning-rate=0.1 --lr-schedule=cosine,warmup:1"}},
      {"checkpoints", "Checkpoints", {"--epochs=30 --checkpoint-every=1s --output=results/long"}},
      {"survival", "Survival", {"--mode=ps --servers=2 --replicas=1 --fault=kill:server0@step500"}},
      {"run", "Run", {"--mode=allreduce --workers=2 --repeat=5"}},
      {"compare",
       "compare",
       {"compare --workers=2 --modes=allreduce,ps:async --repeat=5",
        "compare --modes=allreduce,ps:sync --vary=workers=1,2,4",
        "compare --modes=ps:async --vary=straggler=none,0:4x --vary=servers=1,2 --dry-run",
        "compare --workers=4 --optimizer=sgd --tune-rate=0.03,0.1,0.3", "compare results/first results/second"}},
      {"study",
       "study",
       {"study --cluster=simulated --compute=5ms --vary=workers=1,2,4,8,16 --modes=allreduce,ps:sync,ps:async",
        "study --vary=workers=1,2 --vary=servers=1,2 --repeat=5 --output=results/study", "study study.toml --jobs=1"},
       "A study is compare over the values of options: with speed-up and scaling efficiency where workers are varied, "
       "and with the values at which the faster of two modes changes. It takes what compare takes (--help=compare), "
       "and a file of it: the options' names without dashes, and vary.workers = \"1,2,4\" for --vary. The same command "
       "with the same --output goes on where an interrupted one has stopped; so does compare."},
      {"submit",
       "submit",
       {"submit --kubernetes=job --image=registry.example/syncopate --mode=allreduce --workers=4 --cpus=2 "
        "--memory=4GiB",
        "submit --kubernetes=mpijob --image=registry.example/syncopate --mode=ps --workers=4 --servers=2",
        "submit --slurm --nodes=2 --time-limit=2h --mode=ps --workers=6 --servers=2 --checkpoint-every=30s"},
       "submit prints what a scheduler of your machines takes to start a run: for Kubernetes manifests, for Slurm a "
       "script for sbatch. They begin with the commands that start, watch and stop it. It starts nothing. Beside these "
       "options it takes those of the run; what a form cannot pass on, it refuses by name."},
      {"why",
       "Why",
       {"why results/first", "why results/first results/second", "why results/first --output=why.json"},
       "why reads the results of a finished run and says where its time went: from an ideal step, one worker's own, to "
       "the measured one, part by part, what to change first, and what that is predicted to gain. With two runs it "
       "says where the difference between them went. --output=FILE writes all figures as JSON."},
      {"report",
       "Report",
       {"report results/first", "report results/first --output=first.html",
        "report results/first results/second --output=both.html"},
       "report writes a page for a browser: what a finished run learnt and how fast it was, where the time of a step "
       "went, what each process sent, and the machine. It is one file, opens without a network, and lies in the run's "
       "folder as report.html unless --output=FILE names another. Of several runs it is their comparison. compare and "
       "study write their page, comparison.html, themselves; with their folder, report writes it anew."},
      {"demo",
       "Demonstrations",
       {"demo", "demo straggler", "demo straggler --check=answer.toml"},
       "demo lists the demonstrations. demo NAME asks a question, has runs answer it, draws what they have measured, "
       "and "
       "sets three exercises; --output=DIR keeps it in another folder than results/, --data-dir=DIR has the data. "
       "--check=FILE holds answers against the figures of the newest run of it, or of the one in --output: a line of "
       "TOML for each exercise. It ends with 0 if all are right, with 7 otherwise. A file that ends in .toml is a "
       "demonstration of your own."},
      {"evaluate",
       "Evaluate",
       {"evaluate results/first", "evaluate results/first/checkpoints/step-000400",
        "evaluate model.safetensors --dataset=mnist --predictions=predictions.csv"},
       "evaluate takes the weights that a run has left (its results, a checkpoint, or a file of weights) and says "
       "their loss and accuracy on the test set, bit by bit as the run's last evaluation would. What model they are of "
       "and which data they learnt stands with them; --model, --dataset, --data-dir, --test-samples, --pixel-scale and "
       "the like say otherwise. --predictions=FILE writes what each image is taken for: index, label, predicted class "
       "and its probability, as CSV."},
      {"completion",
       "Completion",
       {"completion > run_experiment.bash"},
       "completion prints a script for bash, which then completes commands, options and the names of files. To have "
       "it in a shell: source <(./run_experiment completion)."},
      {"predictions",
       "Predictions",
       {"reproduce all --output=results/forms", "reproduce piz-daint", "reproduce convergence --output=results/kinds",
        "predict --profile=resnet50 --workers=1,4,16 --batch-size=64 --step-time=292ms --shape=25gbit+50us",
        "predict --profile=resnet50 --workers=16 --batch-size=64 --step-time=292ms --shape=25gbit+50us --simulate=fifo",
        "predict --profile=vgg16 --workers=16 --batch-size=64 --step-time=416ms --shape=25gbit --servers=4 "
        "--sharding=whole --price-worker=3.06 --price-server=0.68",
        "advise --profile=vgg16 --workers=16 --batch-size=64 --step-time=416ms --shape=25gbit+50us",
        "advise --model=resnet50 --compute=a100 --workers=8,32 --shape=10gbit+50us --output=results/advice",
        "advise --profile=bert-large-128 --workers=8,32 --batch-size=8 --step-time=200ms --shape=10gbit+50us "
        "--memory=16GiB --goal=cheapest --price-worker=3.06 --price-server=0.68"}},
  };
  return all;
}

std::vector<std::string> commands_of(const Topic& topic) {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (command.topic == topic.name) names.push_back(command.name);
  }
  return names;
}

std::string preset_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, text] : preset_texts()) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// Returns what is not an option of a run, in the form of the option table.
std::vector<OptionSpec> options_beside_the_table() {
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
       .usual = "the first page"},
      {.group = "Run",
       .name = "version",
       .sentence = "Shows the version, what this program was built of, and with which libraries."},
      {.group = "compare",
       .name = "modes",
       .placeholder = "LIST",
       .sentence = "What to compare; local gets the batch of all workers together. In place of --mode, --consistency, "
                   "--collective, --sync-every and --gossip.",
       .range = "local, allreduce, allreduce:mpi, allreduce:sync-every:k, allreduce:gossip:k, "
                "allreduce:gossip-async:k, " +
                ps_modes() + ", like:PRESET (--help=like)",
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
      {.group = "Predictions",
       .name = "profile",
       .placeholder = "NAME",
       .sentence =
           "predict, advise: the model, by its tensors and their work; --model=NAME is the same. Beside what "
           "follows, both take lists of "
           "--workers, and --batch-size, --shape (a host's link) or --cluster=FILE, as calibrate writes it, "
           "--servers and --sharding=even or whole (each "
           "tensor in equal parts, or each variable on one server), of which advise takes lists, too; predict "
           "also --bucket-bytes (25000000) and --simulate, advise --optimizer (adam). --output=DIR keeps a page "
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

// Returns those that the first page names.
std::vector<OptionSpec> usual_options() {
  std::vector<OptionSpec> options = option_table();
  for (OptionSpec& option : options_beside_the_table()) options.push_back(std::move(option));
  options.push_back(started_by_option());
  return options;
}

// Returns, for example, "[processes; 1 to 64; default 2]".
std::string facts(const OptionSpec& option) {
  std::string text = "[";
  const std::string unit = option.unit + unit_hint(option.unit);
  for (const std::string& part : {unit, option.range}) {
    if (!part.empty()) text += part + "; ";
  }
  return text + "default " + (option.placeholder.empty() ? "off" : option.usual) + "]";
}

std::string text_of(const OptionSpec& option, int columns) {
  std::string sentence = option.sentence;
  if (!option.only_with().empty()) sentence += fmt::format(" Only with {}.", option.only_with());
  if (!option.excludes.empty()) sentence += fmt::format(" Not beside --{}.", option.excludes);
  const std::string value = option.placeholder.empty() ? "" : "=" + option.placeholder;
  return fmt::format("  --{}{}\n", option.name, option.bare.empty() ? value : "[" + value + "]") +
         wrapped(sentence, 6, columns) + wrapped(facts(option), 6, columns);
}

std::string examples_text(const std::vector<std::string>& examples) {
  std::string text;
  for (const std::string& example : examples) text += fmt::format("  run_experiment {}\n", example);
  return text;
}

// Returns the options of a topic's commands, by name.
std::string options_text(const Topic& topic, int columns) {
  std::string text;
  for (const Command& command : commands()) {
    if (command.topic != topic.name || command.has_run || command.options.empty()) continue;
    text += wrapped(fmt::format("{} takes --{}.", command.name, fmt::join(command.options, ", --")), 2, columns);
  }
  return text;
}

std::string topic_text(const Topic& topic, int columns) {
  std::string text = topic.group + "\n" + wrapped(topic.about, 2, columns) + options_text(topic, columns);
  for (const OptionSpec& option : all_options()) {
    if (option.group == topic.group) text += text_of(option, columns);
  }
  return text + "\nAs in\n" + examples_text(topic.examples);
}

std::string usage_text(int columns) {
  std::string text =
      wrapped("Syncopate trains one job under parameter servers or allreduce and measures both on the same footing.", 0,
              columns);
  const auto add = [&](const std::string& command, const std::string& sentence) {
    constexpr int kIndent = 23;
    text += fmt::format("  {:<20} {}", command, wrapped(sentence, kIndent, columns).substr(kIndent));
  };
  text += "\nrun_experiment [OPTIONS] runs one job\nrun_experiment COMMAND [OPTIONS]\n";
  for (const Command& command : commands()) {
    add(command.name + (command.operands.empty() ? "" : " " + command.operands), command.sentence);
  }
  return text;
}

std::string first_page(int columns) {
  std::string text = usage_text(columns) + "\nTo begin with\n" +
                     examples_text({"--mode=ps --servers=2", "compare --workers=2 --modes=allreduce,ps:async"}) +
                     "\nTopics: --help=TOPIC shows one, --help=OPTION all about an option, --help=all everything\n";
  std::vector<std::string> alone;  // topics of commands that have no options of their own
  for (const Topic& topic : topics()) {
    std::vector<std::string> names;
    for (const OptionSpec& option : usual_options()) {
      if (option.group == topic.group) names.push_back(option.name);
    }
    if (names.empty()) {
      alone.push_back(topic.name);
      continue;
    }
    const std::string lines = wrapped(fmt::format("{}", fmt::join(names, ", ")), 15, columns);
    text += fmt::format("  {:<13}{}", topic.name, lines.substr(15));
  }
  return text + wrapped(fmt::format("{}", fmt::join(alone, ", ")), 2, columns);
}

std::string whole_text(int columns) {
  std::string text = usage_text(columns);
  for (const Topic& topic : topics()) text += "\n" + topic_text(topic, columns);
  return text;
}

}  // namespace

std::vector<OptionSpec> all_options() {
  std::vector<OptionSpec> options = usual_options();
  for (OptionSpec& option : submit_options()) options.push_back(std::move(option));
  return options;
}

Result<std::string> help_text(std::string_view topic, int columns) {
  columns = std::max(columns, kFewestColumns);
  if (topic.empty()) return first_page(columns);
  if (topic == "all") return whole_text(columns);
  std::vector<std::string> known = {"all"};
  for (const Topic& one : topics()) {
    if (topic == one.name) return topic_text(one, columns);
    known.push_back(one.name);
  }
  const std::string name(topic.substr(std::min(topic.find_first_not_of('-'), topic.size())));
  std::string text;  // commands may share a name
  for (const OptionSpec& option : all_options()) {
    if (name == option.name) text += text_of(option, columns);
    known.push_back(option.name);
  }
  if (!text.empty()) return text;
  for (const Topic& one : topics()) {
    const std::vector<std::string> names = commands_of(one);
    if (std::ranges::find(names, name) != names.end()) return topic_text(one, columns);
    known.insert(known.end(), names.begin(), names.end());
  }
  const std::string nearest = nearest_name(name, known);
  return Status::invalid_argument(
      fmt::format("--help={}: no such topic or option; {}", topic,
                  nearest.empty() ? "--help lists them" : fmt::format("did you mean {}?", nearest)));
}

}  // namespace syncopate::experiments
