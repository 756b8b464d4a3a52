#include "experiments/config/help_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "common/text/nearest_name.h"
#include "common/text/quantity.h"
#include "experiments/config/commands.h"
#include "experiments/config/line_options.h"
#include "experiments/config/wrapped_text.h"

namespace syncopate::experiments {
namespace {

constexpr int kFewestColumns = 40;

struct Topic {
  std::string name;
  std::string group;                       // heading of the options that it lists
  std::vector<std::string> examples = {};  // each follows "run_experiment "
  std::string about = {};                  // what its commands do; the first page then lists none of its options
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
       {"why results/first", "why results/first results/second", "why results/first --output=why.json",
        "why results/first --device=a100"},
       "why reads the results of a finished run and says where its time went: from an ideal step, one worker's own, to "
       "the measured one, part by part, what to change first, and what that is predicted to gain. With two runs it "
       "says where the difference between them went. A run on GPUs has its phases beside the least time that they "
       "need; "
       "--device=NAME names the device where its driver's name is none of predict --device. --output=FILE writes all "
       "figures as JSON."},
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
       "sets three exercises; --output=DIR keeps it in another folder than results/, --data-dir=DIR has the data. A "
       "file that ends in .toml is a demonstration of your own."},
      {"evaluate",
       "Evaluate",
       {"evaluate results/first", "evaluate results/first/checkpoints/step-000400",
        "evaluate model.safetensors --dataset=mnist --predictions=predictions.csv"},
       "evaluate takes the weights that a run has left (its results, a checkpoint, or a file of weights) and says "
       "their loss and accuracy on the test set, bit by bit as the run's last evaluation would. What model they are of "
       "and which data they learnt stands with them; --model, --dataset, --data-dir, --test-samples, --pixel-scale and "
       "the like say otherwise."},
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
        "predict --device=a100 --model=resnet50 --batch-size=64 --precision=tf32",
        "predict --profile=vgg16 --workers=16 --batch-size=64 --step-time=416ms --shape=25gbit --servers=4 "
        "--sharding=whole --price-worker=3.06 --price-server=0.68",
        "advise --profile=vgg16 --workers=16 --batch-size=64 --step-time=416ms --shape=25gbit+50us",
        "advise --model=resnet50 --compute=a100 --workers=8,32 --shape=10gbit+50us --output=results/advice",
        "advise --model=gpt:4-8-256 --workers=4 --batch-size=8 --step-time=100ms --shape=10gbit+20us",
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

std::string takes_text(const Command& command, int columns) {
  if (command.has_run || command.options.empty()) return {};
  return wrapped(fmt::format("{} takes --{}.", command.name, fmt::join(command.options, ", --")), 2, columns);
}

// Returns the options of a topic's commands, by name.
std::string options_text(const Topic& topic, int columns) {
  std::string text;
  for (const Command& command : commands()) {
    if (command.topic == topic.name) text += takes_text(command, columns);
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

// Returns what a topic says of one of its commands.
std::string command_text(const Command& command, int columns) {
  const Topic& topic = *std::ranges::find(topics(), command.topic, &Topic::name);
  std::string text = fmt::format("{}{}{}\n", command.name, command.operands.empty() ? "" : " ", command.operands) +
                     wrapped(command.sentence + ".", 2, columns) + takes_text(command, columns);
  for (const OptionSpec& option : all_options()) {
    const bool is_its = std::ranges::find(command.options, option.name) != command.options.end();
    if (option.group == topic.group && is_its) text += text_of(option, columns);
  }
  std::vector<std::string> examples;
  for (const std::string& example : topic.examples) {
    if (example.starts_with(command.name + " ")) examples.push_back(example);
  }
  return text + "\nAs in\n" + examples_text(examples) + fmt::format("\nMore: --help={}, --help=OPTION\n", topic.name);
}

std::string usage_text(int columns) {
  std::string text =
      wrapped("Syncopate trains one job under parameter servers or allreduce and measures both on the same footing.", 0,
              columns);
  const auto add = [&](const std::string& command, const std::string& sentence) {
    constexpr int kIndent = 23;
    text += fmt::format("  {:<20} {}", command, wrapped(sentence, kIndent, columns).substr(kIndent));
  };
  text += "\nrun_experiment [COMMAND] [OPTIONS]: no command runs one job\n";
  for (const Command& command : commands()) {
    add(command.name + (command.operands.empty() ? "" : " " + command.operands), command.sentence);
  }
  return text;
}

std::string first_page(int columns) {
  std::string text = usage_text(columns) + "\nTo begin with\n" +
                     examples_text({"--mode=ps --servers=2", "compare --workers=2 --modes=allreduce,ps:async"}) +
                     "\nTopics: --help=TOPIC shows one, --help=OPTION all about an option, --help=all everything\n";
  const std::vector<OptionSpec> options = all_options();
  std::vector<std::string> alone;
  for (const Topic& topic : topics()) {
    if (!topic.about.empty()) {
      alone.push_back(topic.name);
      continue;
    }
    std::vector<std::string> names;
    for (const OptionSpec& option : options) {
      if (option.group == topic.group) names.push_back(option.name);
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

// Where a topic or an option has a command's name, which has help of its own.
std::string command_pointer(std::string_view name, std::string_view shown_topic) {
  const Command* const command = command_named(name);
  if (command == nullptr || command->topic == shown_topic) return {};
  return fmt::format("\nThe command of that name: run_experiment {} --help\n", name);
}

}  // namespace

Result<std::string> help_text(std::string_view topic, int columns) {
  columns = std::max(columns, kFewestColumns);
  if (topic.empty()) return first_page(columns);
  if (topic == "all") return whole_text(columns);
  if (const Command* const command = command_named(topic); command != nullptr && command->has_page) {
    return command_text(*command, columns);
  }
  std::vector<std::string> known = {"all"};
  for (const Topic& one : topics()) {
    if (topic == one.name) return topic_text(one, columns) + command_pointer(topic, one.name);
    known.push_back(one.name);
  }
  const std::string name(topic.substr(std::min(topic.find_first_not_of('-'), topic.size())));
  std::string text;  // commands may share a name
  for (const OptionSpec& option : all_options()) {
    if (name == option.name) text += text_of(option, columns);
    known.push_back(option.name);
  }
  if (!text.empty()) return text + command_pointer(name, {});
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
