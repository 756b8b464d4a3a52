#include "experiments/config/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "common/os/regular_file.h"
#include "common/text/printable_text.h"
#include "experiments/config/compare_line.h"
#include "experiments/config/help_text.h"
#include "experiments/config/measure_line.h"
#include "experiments/config/nearest_name.h"
#include "experiments/config/option_words.h"
#include "experiments/config/options/given_options.h"
#include "experiments/config/options/option_table.h"
#include "experiments/config/prediction_commands.h"
#include "experiments/config/remote_shell.h"
#include "experiments/config/resolution.h"
#include "experiments/config/started_by/slurm_allocation.h"
#include "experiments/config/started_by/task_options.h"
#include "experiments/config/submit_line.h"
#include "experiments/config/variable_list.h"

namespace syncopate::experiments {
namespace {

constexpr std::uint64_t kMostConfigBytes = 1 << 20;

// Binds every option of the table as a text; the table checks the values, for flags and files alike. Unknown names are
// collected, so that the message can suggest what was meant.
void bind(CLI::App& app, const std::vector<OptionSpec>& table) {
  app.set_help_flag();
  app.allow_extras();
  app.add_option("--help,-h")->expected(0, 1)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_flag("--version");
  app.add_flag("--plot");
  app.add_option("--like")->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--started-by")->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--config")->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  for (const OptionSpec& option : table) {
    if (option.placeholder.empty()) {
      app.add_flag("--" + option.name);
    } else {
      app.add_option("--" + option.name)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->expected(1);
    }
  }
}

constexpr std::array kOfCompare{"modes", "vary",         "rate-rule",    "tune-rate",
                                "jobs",  "price-worker", "price-server", "repeat-limit"};

// Returns the options of the program and of its commands that take a value.
std::map<std::string, ValueForm> value_forms(const std::vector<OptionSpec>& table) {
  std::map<std::string, ValueForm> forms{
      {"config", {.placeholder = "FILE"}}, {"like", {.placeholder = "PRESET"}}, {"started-by", {}}};
  for (const char* name : kOfCompare) forms[name] = {};
  for (const auto& options : {table, submit_options()}) {
    for (const OptionSpec& option : options) {
      if (!option.placeholder.empty()) forms[option.name] = {option.placeholder, option.bare};
    }
  }
  return forms;
}

Status unknown(const std::string& argument, const std::vector<OptionSpec>& table) {
  if (is_prediction_command(argument) || reads_finished_runs(argument) || argument == kDemoCommand ||
      argument == kDoctorCommand || argument == kPsCommand || argument == kStopCommand) {
    return Status::invalid_argument(fmt::format("{}: must be the first word, before all options", argument));
  }
  if (!argument.starts_with("-")) {
    return Status::invalid_argument(
        fmt::format("{}: no such command; leave it out to run one job, or say compare to run several modes", argument));
  }
  std::vector<std::string> known;
  for (const OptionSpec& option : table) known.push_back(option.name);
  known.insert(known.end(), {"help", "version", "config", "like", "plot", "started-by"});
  known.insert(known.end(), kOfCompare.begin(), kOfCompare.end());
  for (const OptionSpec& option : submit_options()) known.push_back(option.name);
  const std::string flag = argument.substr(0, argument.find('='));
  const std::string name =
      flag.substr(flag.find_first_not_of('-') == std::string::npos ? flag.size() : flag.find_first_not_of('-'));
  const std::string nearest = nearest_name(name, known);
  if (nearest == name && std::ranges::count(submit_options(), name, &OptionSpec::name) > 0) {
    return Status::invalid_argument(
        fmt::format("{}: an option of submit, which must be the first word; a run has none of that name{}", flag,
                    name == "gpus" ? ", and trains on GPUs with --device=cuda, one of each worker" : ""));
  }
  return Status::invalid_argument(fmt::format(
      "{}: no such flag; {}", flag, nearest.empty() ? "--help lists all" : fmt::format("did you mean --{}?", nearest)));
}

Result<std::string> single_value(const CLI::Option& option) {
  const std::vector<std::string> values = option.results();
  if (values.size() == 1) return values.front();
  return Status::invalid_argument(fmt::format("{}: given {} times; once is enough", option.get_name(), values.size()));
}

Result<GivenOptions> given_on_line(const CLI::App& app, const std::vector<OptionSpec>& table) {
  GivenOptions given;
  for (const OptionSpec& option : table) {
    const CLI::Option* flag = app.get_option("--" + option.name);
    if (flag->count() == 0) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(
        std::string value, option.is_list ? fmt::format("{}", fmt::join(flag->results(), ",")) : single_value(*flag));
    given[option.name] = std::move(value);
  }
  return given;
}

Result<GivenOptions> given_in_file_of(const CLI::Option& option) {
  if (option.count() == 0) return GivenOptions();
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string path, single_value(option));
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
Result<CommandLine> line_like(const CLI::Option& option, const GivenOptions& given,
                              const std::optional<TaskPlace>& place) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string name, single_value(option));
  SYNCOPATE_ASSIGN_OR_RETURN(Preset preset, open_preset(name));
  Result<CommandLine> line = run_line(merge(given, preset.options), place);
  if (!line.ok()) {
    return Status(line.status().code(),
                  fmt::format("{} (--like={} sets what was not given)", line.status().message(), name));
  }
  line->like = std::move(preset);
  return line;
}

Result<GivenOptions> options_of_preset(const CLI::Option& option) {
  if (option.count() == 0) return GivenOptions();
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string name, single_value(option));
  SYNCOPATE_ASSIGN_OR_RETURN(Preset preset, open_preset(name));
  return std::move(preset.options);
}

Status check_no_preset(const CLI::Option& option, const char* command) {
  if (option.count() == 0) return {};
  return Status::invalid_argument(fmt::format("--like={0}: {1} takes it as a mode, as in --modes=local,like:{0}",
                                              option.results().front(), command));
}

// Returns the place of this process among those that somebody else has started together, if it is one of them.
Result<std::optional<TaskPlace>> place_in(const CLI::Option& started_by, const Variables& environment) {
  if (started_by.count() == 0) return task_place(environment, StartedBy::kAuto);
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string name, single_value(started_by));
  SYNCOPATE_ASSIGN_OR_RETURN(const StartedBy by, parse_started_by(name));
  return task_place(environment, by);
}

// Several processes that were started together are those of one run.
Status check_alone(const std::optional<TaskPlace>& place, const char* command) {
  if (!place) return {};
  return Status::invalid_argument(
      fmt::format("{}: {} has started {} processes, each of which would do the same; start one, or run a single job",
                  command, launcher_of(place->by), place->size));
}

// Returns the options of compare alone; `folders` are the positional arguments.
Result<CompareWords> compare_words(const CLI::App& compare, std::vector<std::string> folders) {
  CompareWords words{.folders = std::move(folders)};
  const std::pair<const char*, std::optional<std::string>*> options[] = {{"--modes", &words.modes},
                                                                         {"--rate-rule", &words.rate_rule},
                                                                         {"--tune-rate", &words.tune_rate},
                                                                         {"--jobs", &words.jobs},
                                                                         {"--price-worker", &words.price_worker},
                                                                         {"--price-server", &words.price_server},
                                                                         {"--repeat-limit", &words.repeat_limit}};
  for (const auto& [name, to] : options) {
    const CLI::Option* option = compare.get_option(name);
    if (option->count() == 0) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(*to, single_value(*option));
  }
  words.vary = compare.get_option("--vary")->results();
  return words;
}

// Returns the options of submit alone.
Result<SubmitWords> submit_words(const CLI::App& submit) {
  SubmitWords words;
  for (const OptionSpec& spec : submit_options()) {
    const CLI::Option* option = submit.get_option("--" + spec.name);
    if (option->count() == 0) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(words[spec.name], single_value(*option));
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
    return Status::invalid_argument(
        fmt::format("{}: must be the file of a study that can be read ({})", words.front(), text.status().message()));
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

// `compare --help`, `why --help`, `predict --help` and their like show the topic of that command.
Result<CommandLine> help_asked_for(const CLI::Option& help, const std::string& of_command,
                                   const std::vector<std::string>& words) {
  CommandLine line;
  line.action = CommandLine::Action::kHelp;
  line.topic = help.results().empty() ? "" : help.results().front();
  if (line.topic.empty()) line.topic = of_command;
  const auto is_topic = [](const std::string& word) {
    return is_prediction_command(word) || reads_finished_runs(word) || word == kDemoCommand || word == kDoctorCommand;
  };
  const bool is_of_running = !words.empty() && (words.front() == kPsCommand || words.front() == kStopCommand);
  if (line.topic.empty() && is_of_running) line.topic = kStopCommand;  // ps is the topic of parameter servers
  if (line.topic.empty() && !words.empty() && is_topic(words.front())) {
    line.topic = words.front();
  }
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
  SYNCOPATE_ASSIGN_OR_RETURN(std::vector<std::string> joined, with_values_joined(own_words, value_forms(table)));
  CLI::App app;
  bind(app, table);
  CLI::App* compare = app.add_subcommand("compare")->fallthrough();
  CLI::App* study = app.add_subcommand("study")->fallthrough();
  for (CLI::App* command : {compare, study}) {
    command->set_help_flag();
    for (const char* name : kOfCompare) {
      command->add_option(std::string("--") + name)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->expected(1);
    }
  }
  CLI::App* profile = app.add_subcommand("profile")->fallthrough();
  CLI::App* calibrate = app.add_subcommand("calibrate")->fallthrough();
  CLI::App* submit = app.add_subcommand("submit")->fallthrough();
  for (CLI::App* command : {profile, calibrate, submit}) command->set_help_flag();
  for (const OptionSpec& option : submit_options()) {
    if (option.placeholder.empty()) {
      submit->add_flag("--" + option.name)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    } else {
      submit->add_option("--" + option.name)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->expected(1);
    }
  }
  try {
    std::ranges::reverse(joined);  // as it is asked for
    app.parse(joined);
  } catch (const CLI::ParseError& error) {
    const std::string message = error.what();
    const std::string flag = message.substr(0, message.find(':'));
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return Status::invalid_argument(message);
    return Status::invalid_argument(fmt::format("{0}: needs a value, as in {0}=VALUE; --help says which", flag));
  }
  if (const CLI::Option* help = app.get_option("--help"); help->count() > 0) {
    const char* const of_command = compare->parsed()                          ? "compare"
                                   : study->parsed()                          ? "study"
                                   : submit->parsed()                         ? "submit"
                                   : profile->parsed() || calibrate->parsed() ? "measurements"
                                                                              : "";
    return help_asked_for(*help, of_command, app.remaining(true));
  }
  if (app.get_option("--version")->count() > 0) {
    CommandLine line;
    line.action = CommandLine::Action::kVersion;
    return line;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<TaskPlace> place,
                             place_in(*app.get_option("--started-by"), environment));
  for (const CLI::App* command : {compare, study, profile, calibrate, submit}) {
    if (command->parsed()) SYNCOPATE_RETURN_IF_ERROR(check_alone(place, command->get_name().c_str()));
  }
  std::vector<std::string> folders = app.remaining(true);
  const auto intruder = std::ranges::find_if(
      folders, [&](const auto& word) { return (!compare->parsed() && !study->parsed()) || word.starts_with("-"); });
  if (intruder != folders.end()) return unknown(*intruder, table);
  SYNCOPATE_ASSIGN_OR_RETURN(GivenOptions line, given_on_line(app, table));
  SYNCOPATE_RETURN_IF_ERROR(add_command(own_program, line));
  SYNCOPATE_ASSIGN_OR_RETURN(const GivenOptions file, given_in_file_of(*app.get_option("--config")));
  const bool plots = app.get_option("--plot")->count() > 0;
  const auto drawn = [&](Result<CommandLine> command) {
    if (!command.ok()) return command;
    command->plot = plots;
    if (compare->parsed() || study->parsed() || submit->parsed()) command->typed = typed_line(argc, argv);
    return command;
  };
  if (study->parsed()) {
    SYNCOPATE_RETURN_IF_ERROR(check_no_preset(*app.get_option("--like"), "study"));
    SYNCOPATE_ASSIGN_OR_RETURN(CompareWords words, compare_words(*study, {}));
    SYNCOPATE_ASSIGN_OR_RETURN(StudyFile asked, study_in(folders));
    asked = merge(StudyFile{merge(line, file), std::move(words)}, std::move(asked));
    return drawn(study_line(asked.given, asked.words));
  }
  GivenOptions given = merge(line, file);
  if (const auto variables = given.find("environment"); variables != given.end()) {
    Result<std::string> settled = with_values_of(environment, variables->second);
    if (!settled.ok()) return settled.status().in("--environment=" + printable(variables->second));
    variables->second = std::move(*settled);
  }
  if (!submit->parsed()) SYNCOPATE_RETURN_IF_ERROR(settle_slurm(environment, given));
  if (plots && (profile->parsed() || calibrate->parsed() || submit->parsed())) {
    return Status::invalid_argument("--plot: profile, calibrate and submit have no curves; leave it out");
  }
  if (profile->parsed()) return profile_line(given);
  if (calibrate->parsed()) return calibrate_line(given);
  const CLI::Option& like = *app.get_option("--like");
  if (submit->parsed()) {
    SYNCOPATE_ASSIGN_OR_RETURN(const GivenOptions preset, options_of_preset(like));
    SYNCOPATE_ASSIGN_OR_RETURN(const SubmitWords words, submit_words(*submit));
    return drawn(submit_line(merge(given, preset), words));
  }
  if (!compare->parsed()) return drawn(like.count() > 0 ? line_like(like, given, place) : run_line(given, place));
  SYNCOPATE_RETURN_IF_ERROR(check_no_preset(like, "compare"));
  SYNCOPATE_ASSIGN_OR_RETURN(const CompareWords words, compare_words(*compare, std::move(folders)));
  return drawn(compare_line(given, words));
}

}  // namespace syncopate::experiments
