#include "experiments/config/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "common/os/regular_file.h"
#include "common/text/nearest_name.h"
#include "common/text/printable_text.h"
#include "experiments/config/commands.h"
#include "experiments/config/compare_line.h"
#include "experiments/config/help_text.h"
#include "experiments/config/line_options.h"
#include "experiments/config/measure_line.h"
#include "experiments/config/option_words.h"
#include "experiments/config/options/given_options.h"
#include "experiments/config/options/option_kinds.h"
#include "experiments/config/options/option_table.h"
#include "experiments/config/remote_shell.h"
#include "experiments/config/resolution.h"
#include "experiments/config/started_by/slurm_allocation.h"
#include "experiments/config/started_by/started_task.h"
#include "experiments/config/started_by/task_options.h"
#include "experiments/config/submit_line.h"
#include "experiments/config/variable_list.h"

namespace syncopate::experiments {
namespace {

constexpr std::uint64_t kMostConfigBytes = 1 << 20;

// Returns the forms of a run's options, of those of any line, and of these besides.
OptionForms forms_with(const std::vector<std::string>& more, const std::vector<OptionSpec>& table) {
  OptionForms forms = more.empty() ? OptionForms() : forms_named(more);
  forms.merge(forms_of(table));
  forms.merge(forms_of(options_beside_a_run()));
  return forms;
}

// The words of a line, by the command that it has; null: one job.
struct ReadLine {
  const Command* command = nullptr;
  OptionWords words;

  bool is(std::string_view name) const { return command != nullptr && command->name == name; }
  bool has(const std::string& name) const { return words.values.contains(name); }
};

// The command is the first word that is no option and no value, if it has a run.
Result<ReadLine> read_line(const std::vector<std::string>& typed, const std::vector<OptionSpec>& table) {
  std::vector<std::string> words = typed;
  std::ranges::replace(words, "-h", "--help");
  std::vector<std::string> of_commands;
  for (const Command& command : commands()) {
    if (command.has_run) of_commands.insert(of_commands.end(), command.options.begin(), command.options.end());
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const OptionWords loosely, option_words(words, forms_with(of_commands, table)));
  ReadLine line;
  if (!loosely.operands.empty()) line.command = command_named(loosely.operands.front());
  if (line.command != nullptr && !line.command->has_run) line.command = nullptr;
  SYNCOPATE_ASSIGN_OR_RETURN(
      line.words,
      option_words(words, line.command == nullptr ? forms_with({}, table) : forms_with(line.command->options, table)));
  if (line.command != nullptr) line.words.operands.erase(line.words.operands.begin());
  return line;
}

Status unknown_word(const ReadLine& line) {
  const std::string& word = line.words.operands.front();
  if (command_named(word) != nullptr) {
    return Status::invalid_argument(fmt::format("{}: must be the first word, before all options", word));
  }
  if (line.command != nullptr) {
    return Status::invalid_argument(
        fmt::format("{}: '{}': it takes options alone; leave that out", line.command->name, word));
  }
  std::vector<std::string> known;
  for (const Command& command : commands()) known.push_back(command.name);
  const std::string nearest = word.empty() ? "" : nearest_name(word, known);
  return Status::invalid_argument(
      fmt::format("{}: no such command; {}", word,
                  nearest.empty() ? "leave it out to run one job, or say compare to run several modes; --help lists all"
                                  : fmt::format("did you mean {}?", nearest)));
}

// Returns "compare or study": the commands, but for that of the line, that have this option of their own.
std::string others_with(const std::string& option, const Command* own) {
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (&command != own && std::ranges::count(command.options, option) > 0) names.push_back(command.name);
  }
  return option_kinds::any_of(names);
}

Status unknown_option(const std::string& word, const ReadLine& line, const std::vector<OptionSpec>& table) {
  const std::string flag = word.substr(0, word.find('='));
  const std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  if (const std::string others = others_with(name, line.command); !others.empty()) {
    return Status::invalid_argument(
        fmt::format("{}: an option of {}: put that command first; {} has none of that name{}", flag, others,
                    line.command == nullptr ? "a run" : line.command->name,
                    name == "gpus" ? ", and trains on GPUs with --device=cuda, one of each worker" : ""));
  }
  std::vector<std::string> known;
  for (const OptionSpec& option : table) known.push_back(option.name);
  for (const OptionSpec& option : options_beside_a_run()) known.push_back(option.name);
  for (const Command& command : commands()) {
    if (command.has_run) known.insert(known.end(), command.options.begin(), command.options.end());
  }
  const std::string nearest = nearest_name(name, known);
  return Status::invalid_argument(fmt::format(
      "{}: no such flag; {}", flag, nearest.empty() ? "--help lists all" : fmt::format("did you mean --{}?", nearest)));
}

// Fails unless all words are known, where they stand.
Status check_words(const ReadLine& line, const std::vector<OptionSpec>& table) {
  if (!line.words.unknown.empty()) return unknown_option(line.words.unknown.front(), line, table);
  const bool takes_operands = line.command != nullptr && !line.command->operands.empty();
  if (takes_operands || line.words.operands.empty()) return {};
  return unknown_word(line);
}

Result<GivenOptions> given_on_line(const OptionWords& words, const std::vector<OptionSpec>& table) {
  GivenOptions given;
  for (const OptionSpec& option : table) {
    const auto found = words.values.find(option.name);
    if (found == words.values.end()) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(
        given[option.name], option.is_list ? fmt::format("{}", fmt::join(found->second, ",")) : words.one(option.name));
  }
  return given;
}

Result<GivenOptions> given_in_file_of(const ReadLine& line) {
  if (!line.has("config")) return GivenOptions();
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string path, line.words.one("config"));
  const Result<std::string> text = read_input(path, kMostConfigBytes);
  if (!text.ok()) {
    return Status::invalid_argument(
        fmt::format("--config={}: must be a file that can be read ({})", path, text.status().message()));
  }
  Result<GivenOptions> given = given_in_file(*text);
  if (!given.ok()) return given.status().in(path);
  return given;
}

// The same command can only find what it has left where it says so.
Status check_auto_resume(const RunRequest& config) {
  if (config.resume != "auto") return {};
  if (!config.output) {
    return Status::invalid_argument(
        "--resume=auto: goes on in the folder of --output; give --output=DIR, the same each time");
  }
  if (config.checkpoint_every) return {};
  return Status::invalid_argument(
      "--resume=auto: goes on from a checkpoint; give --checkpoint-every, as in --checkpoint-every=1epoch");
}

Result<CommandLine> run_line(GivenOptions given, const std::optional<TaskPlace>& place) {
  if (place) SYNCOPATE_RETURN_IF_ERROR(settle_tasks(*place, given));
  SYNCOPATE_ASSIGN_OR_RETURN(const RunRequest config, apply_options(given));
  // On which hosts tasks are, they learn from each other; what depends on that is checked then. An evaluator has no
  // part.
  if (!place || (place->one_host && !place->evaluates)) {
    SYNCOPATE_RETURN_IF_ERROR(check_effect(given, {presumed(config)}));
    SYNCOPATE_RETURN_IF_ERROR(check(config));
  }
  SYNCOPATE_RETURN_IF_ERROR(check_auto_resume(config));
  CommandLine line;
  line.config = config;
  line.given = std::move(given);
  line.place = place;
  return line;
}

// Returns a run of a preset's options, where no others are given.
Result<CommandLine> line_like(const ReadLine& words, const GivenOptions& given, const std::optional<TaskPlace>& place) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string name, words.words.one("like"));
  SYNCOPATE_ASSIGN_OR_RETURN(Preset preset, open_preset(name));
  Result<CommandLine> line = run_line(merge(given, preset.options), place);
  if (!line.ok()) {
    return Status(line.status().code(),
                  fmt::format("{} (--like={} sets what was not given)", line.status().message(), name));
  }
  line->like = std::move(preset);
  return line;
}

Result<GivenOptions> options_of_preset(const ReadLine& words) {
  if (!words.has("like")) return GivenOptions();
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string name, words.words.one("like"));
  SYNCOPATE_ASSIGN_OR_RETURN(Preset preset, open_preset(name));
  return std::move(preset.options);
}

Status check_no_preset(const ReadLine& words) {
  if (!words.has("like")) return {};
  return Status::invalid_argument(fmt::format("--like={0}: {1} takes it as a mode, as in --modes=local,like:{0}",
                                              words.words.values.at("like").front(), words.command->name));
}

// Returns the place of this process among those that somebody else has started together, if it is one of them.
Result<std::optional<TaskPlace>> place_in(const ReadLine& words, const Variables& environment) {
  if (!words.has("started-by")) return started_task(environment, StartedBy::kAuto);
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string name, words.words.one("started-by"));
  SYNCOPATE_ASSIGN_OR_RETURN(const StartedBy by, parse_started_by(name));
  return started_task(environment, by);
}

// Several processes that were started together are those of one run.
Status check_alone(const std::optional<TaskPlace>& place, const std::string& command) {
  if (!place) return {};
  return Status::invalid_argument(
      fmt::format("{}: {} has started {} processes, each of which would do the same; start one, or run a single job",
                  command, launcher_of(place->by), place->size));
}

// Returns the options of compare alone.
Result<CompareWords> compare_words(const OptionWords& line, std::vector<std::string> folders) {
  CompareWords words{.folders = std::move(folders)};
  for (const auto& [name, word] : kCompareOptions) {
    if (!line.values.contains(name)) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(words.*word, line.one(name));
  }
  if (const auto vary = line.values.find("vary"); vary != line.values.end()) words.vary = vary->second;
  return words;
}

// Returns the options of submit alone.
Result<SubmitWords> submit_words(const ReadLine& line) {
  SubmitWords words;
  for (const std::string& name : line.command->options) {
    if (!line.has(name)) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(words[name], line.words.one(name));
  }
  return words;
}

// Returns the study of the file that `words` name, if they do.
Result<StudyFile> study_in(const std::vector<std::string>& words) {
  if (words.empty()) return StudyFile();
  if (words.size() > 1) {
    return Status::invalid_argument(fmt::format("{}: a study has one file; {} is one already", words[1], words[0]));
  }
  const Result<std::string> text = read_input(words.front(), kMostConfigBytes);
  if (!text.ok()) {
    return Status::invalid_argument(fmt::format(
        "{}: must be the file of a study that can be read ({}); finished runs are carried on to other sizes "
        "with --to, as in --to=workers=64,256",
        words.front(), text.status().message()));
  }
  Result<StudyFile> study = read_study(*text);
  if (!study.ok()) return study.status().in(words.front());
  return study;
}

// Returns the command line in a form that can be typed again.
std::string typed_line(int argc, const char* const* argv) {
  std::string line = "run_experiment";
  for (int i = 1; i < argc; ++i) line += " " + quoted(argv[i]);
  return line;
}

// `compare --help`, `why --help` and their like show the topic of that command.
Result<CommandLine> help_asked_for(const ReadLine& words) {
  CommandLine line;
  line.action = CommandLine::Action::kHelp;
  const std::string& topic = words.words.values.at("help").back();
  const Command* command = words.command;
  if (command == nullptr && !words.words.operands.empty()) command = command_named(words.words.operands.front());
  line.topic = topic != kFirstPage  ? topic
               : command == nullptr ? ""
               : command->has_page  ? command->name
                                    : command->topic;
  const Result<std::string> text = help_text(line.topic, 80);
  if (!text.ok()) return text.status();
  return line;
}

bool is_utf8(const std::string& text) {
  try {
    (void)nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

// Fails unless all arguments are UTF-8, since names go into files and messages that are.
Status check_text(int argc, const char* const* argv) {
  for (const std::string& argument : std::vector<std::string>(argv, argv + argc)) {
    if (is_utf8(argument)) continue;
    std::string shown;
    for (const char c : argument) {
      const auto byte = static_cast<unsigned char>(c);
      shown += byte >= 0x20 && byte < 0x7F ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
    }
    return Status::invalid_argument(
        fmt::format("{}: is not UTF-8, as all arguments and names of folders must be", shown));
  }
  return {};
}

// Returns the words from the first "--" on; none if there is no such word.
std::vector<std::string> command_behind_dashes(int argc, const char* const* argv) {
  const char* const* const end = argv + argc;
  return {std::find(argv, end, std::string_view("--")), end};
}

// What stands behind "--" is the program that each worker runs.
Status add_command(const std::vector<std::string>& words, GivenOptions& given) {
  if (words.empty()) return {};
  if (words.size() == 1) {
    return Status::invalid_argument("--: no program follows; say which one each worker runs, as in -- python train.py");
  }
  if (given.contains("command")) {
    return Status::invalid_argument(
        fmt::format("--command={}: the words behind -- name a program, too; leave one out", given.at("command")));
  }
  std::string& line = given["command"];
  for (std::size_t i = 1; i < words.size(); ++i) line += (i == 1 ? "" : " ") + quoted(words[i]);
  return {};
}

}  // namespace

Result<CommandLine> parse_command_line(int argc, const char* const* argv, const Variables& environment) {
  SYNCOPATE_RETURN_IF_ERROR(check_text(argc, argv));
  const std::vector<OptionSpec> table = option_table();
  const std::vector<std::string> own_program = command_behind_dashes(argc, argv);
  const std::vector<std::string> own_words(argv + 1, argv + argc - own_program.size());
  SYNCOPATE_ASSIGN_OR_RETURN(const ReadLine words, read_line(own_words, table));
  if (words.has("help")) return help_asked_for(words);
  if (words.has("version")) {
    CommandLine line;
    line.action = CommandLine::Action::kVersion;
    return line;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<TaskPlace> place, place_in(words, environment));
  if (words.command != nullptr) SYNCOPATE_RETURN_IF_ERROR(check_alone(place, words.command->name));
  SYNCOPATE_RETURN_IF_ERROR(check_words(words, table));
  SYNCOPATE_ASSIGN_OR_RETURN(GivenOptions line, given_on_line(words.words, table));
  SYNCOPATE_RETURN_IF_ERROR(add_command(own_program, line));
  SYNCOPATE_ASSIGN_OR_RETURN(const GivenOptions file, given_in_file_of(words));
  const bool plots = words.has("plot"), compares = words.is("compare") || words.is("study");
  const auto drawn = [&](Result<CommandLine> command) {
    if (!command.ok()) return command;
    command->plot = plots;
    if (compares || words.is("submit")) command->typed = typed_line(argc, argv);
    return command;
  };
  if (words.is("study")) {
    SYNCOPATE_RETURN_IF_ERROR(check_no_preset(words));
    SYNCOPATE_ASSIGN_OR_RETURN(CompareWords own, compare_words(words.words, {}));
    SYNCOPATE_ASSIGN_OR_RETURN(StudyFile asked, study_in(words.words.operands));
    asked = merge(StudyFile{merge(line, file), std::move(own)}, std::move(asked));
    return drawn(study_line(asked.given, asked.words));
  }
  GivenOptions given = merge(line, file);
  if (const auto variables = given.find("environment"); variables != given.end()) {
    Result<std::string> settled = with_values_of(environment, variables->second);
    if (!settled.ok()) return settled.status().in("--environment=" + printable(variables->second));
    variables->second = std::move(*settled);
  }
  if (!words.is("submit")) SYNCOPATE_RETURN_IF_ERROR(settle_slurm(environment, given));
  if (plots && words.command != nullptr && !compares) {
    return Status::invalid_argument("--plot: profile, calibrate and submit have no curves; leave it out");
  }
  if (words.is("profile")) return profile_line(given);
  if (words.is("calibrate")) return calibrate_line(given);
  if (words.is("submit")) {
    SYNCOPATE_ASSIGN_OR_RETURN(const GivenOptions preset, options_of_preset(words));
    SYNCOPATE_ASSIGN_OR_RETURN(const SubmitWords own, submit_words(words));
    return drawn(submit_line(merge(given, preset), own));
  }
  if (!compares) return drawn(words.has("like") ? line_like(words, given, place) : run_line(given, place));
  SYNCOPATE_RETURN_IF_ERROR(check_no_preset(words));
  SYNCOPATE_ASSIGN_OR_RETURN(const CompareWords own, compare_words(words.words, words.words.operands));
  return drawn(compare_line(given, own));
}

}  // namespace syncopate::experiments
