#include "experiments/config/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/regular_file.h"
#include "experiments/config/given_options.h"
#include "experiments/config/help_text.h"
#include "experiments/config/nearest_name.h"
#include "experiments/config/option_table.h"
#include "experiments/config/variation.h"

namespace syncopate::experiments {
namespace {

constexpr std::uint64_t kMostConfigBytes = 1 << 20;

Status wrong(std::string message) { return Status(Code::kInvalidArgument, std::move(message)); }

// Every option of the table as a text: what it may hold is the table's business, for flags and files alike. What nobody
// knows is collected, so that the message can suggest what was meant.
void bind(CLI::App& app, const std::vector<OptionSpec>& table) {
  app.set_help_flag();
  app.allow_extras();
  app.add_option("--help,-h")->expected(0, 1)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_flag("--version");
  app.add_option("--config")->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  for (const OptionSpec& option : table) {
    if (option.placeholder.empty()) {
      app.add_flag("--" + option.name);
    } else {
      app.add_option("--" + option.name)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->expected(1);
    }
  }
}

Status unknown(const std::string& argument, const std::vector<OptionSpec>& table) {
  if (!argument.starts_with("-")) {
    return wrong(
        fmt::format("{}: no such command; leave it out to run one job, or say compare to run several modes", argument));
  }
  std::vector<std::string> known;
  for (const OptionSpec& option : table) known.push_back(option.name);
  known.insert(known.end(), {"help", "version", "config", "modes", "vary"});
  const std::string flag = argument.substr(0, argument.find('='));
  const std::string nearest = nearest_name(
      flag.substr(flag.find_first_not_of('-') == std::string::npos ? flag.size() : flag.find_first_not_of('-')), known);
  return wrong(fmt::format("{}: no such flag; {}", flag,
                           nearest.empty() ? "--help lists all" : fmt::format("did you mean --{}?", nearest)));
}

Result<std::string> single_value(const CLI::Option& option) {
  const std::vector<std::string> values = option.results();
  if (values.size() == 1) return values.front();
  return wrong(fmt::format("{}: given {} times; once is enough", option.get_name(), values.size()));
}

Result<GivenOptions> given_on_line(const CLI::App& app, const std::vector<OptionSpec>& table) {
  GivenOptions given;
  for (const OptionSpec& option : table) {
    const CLI::Option* flag = app.get_option("--" + option.name);
    if (flag->count() == 0) continue;
    const Result<std::string> value =
        option.is_list ? fmt::format("{}", fmt::join(flag->results(), ",")) : single_value(*flag);
    if (!value.ok()) return value.status();
    given[option.name] = *value;
  }
  return given;
}

Result<GivenOptions> given_in_file_of(const CLI::Option& option) {
  if (option.count() == 0) return GivenOptions();
  const Result<std::string> path = single_value(option);
  if (!path.ok()) return path.status();
  const Result<std::string> text = read_input(*path, kMostConfigBytes);
  if (!text.ok()) {
    return wrong(fmt::format("--config={}: must be a file that can be read ({})", *path, text.status().message()));
  }
  Result<GivenOptions> given = given_in_file(*text);
  if (!given.ok()) return given.status().in(*path);
  return given;
}

// Fills in the runs of a comparison that varies an option.
Status vary_runs(const CLI::Option& vary, const std::string& modes, CommandLine& line) {
  const Result<std::string> text = single_value(vary);
  if (!text.ok()) return text.status();
  const Result<Variation> variation = parse_variation(*text);
  if (!variation.ok()) return variation.status();
  if (line.given.contains(variation->option)) {
    return wrong(fmt::format("--{}={}: given beside --vary={}; leave one out", variation->option,
                             line.given.at(variation->option), *text));
  }
  Result<VariedRuns> varied = varied_runs(line.config, modes, *variation);
  if (!varied.ok()) return varied.status();
  line.runs = std::move(varied->runs);
  line.left_out = std::move(varied->left_out);
  line.varied = variation->option;
  GivenOptions with_first = line.given;
  with_first[variation->option] = variation->values.front();
  Result<RunConfig> first = apply_options(with_first);
  if (!first.ok()) return first.status();
  line.config = std::move(*first);
  return {};
}

Result<CommandLine> request_of(const GivenOptions& given, const CLI::App& compare) {
  const Result<RunConfig> config = apply_options(given);
  if (!config.ok()) return config.status();
  CommandLine line;
  line.config = *config;
  line.given = given;
  if (!compare.parsed()) {
    SYNCOPATE_RETURN_IF_ERROR(check_effect(given, {*config}));
    SYNCOPATE_RETURN_IF_ERROR(validate(*config));
    return line;
  }
  for (const char* name : {"mode", "consistency", "collective", "sync-every", "gossip"}) {
    if (!given.contains(name)) continue;
    return wrong(fmt::format("--{}={}: compare takes its modes from --modes, as in --modes={}", name, given.at(name),
                             kUsualModes));
  }
  if (given.contains("dry-run")) return wrong("--dry-run: compare has many runs; give it to one of them");
  for (const char* name : {"checkpoint-every", "resume", "checkpoint-key-file"}) {
    if (!given.contains(name)) continue;
    return wrong(fmt::format("--{}={}: compare measures runs from their beginning to their end; give it to one run",
                             name, given.at(name)));
  }
  const CLI::Option* modes = compare.get_option("--modes");
  const Result<std::string> list = modes->count() == 0 ? std::string(kUsualModes) : single_value(*modes);
  if (!list.ok()) return list.status();
  line.action = CommandLine::Action::kCompare;
  if (const CLI::Option* vary = compare.get_option("--vary"); vary->count() > 0) {
    SYNCOPATE_RETURN_IF_ERROR(vary_runs(*vary, *list, line));
  } else {
    Result<std::vector<ComparedRun>> runs = comparison_runs(*config, *list);
    if (!runs.ok()) return runs.status();
    line.runs = std::move(*runs);
  }
  std::vector<RunConfig> configs;
  for (const ComparedRun& run : line.runs) configs.push_back(run.config);
  if (const auto hurt = std::ranges::find_if_not(configs, [](const RunConfig& c) { return c.faults.empty(); });
      hurt != configs.end()) {
    return wrong(fmt::format("--fault={}: compare measures runs that nobody disturbs; give it to one run",
                             hurt->faults.to_string()));
  }
  SYNCOPATE_RETURN_IF_ERROR(check_effect(given, configs));
  return line;
}

// `compare --help` is of compare.
Result<CommandLine> help_asked_for(const CLI::Option& help, const CLI::App& compare) {
  CommandLine line;
  line.action = CommandLine::Action::kHelp;
  line.topic = help.results().empty() ? "" : help.results().front();
  if (line.topic.empty() && compare.parsed()) line.topic = "compare";
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

// Names go into files and messages that are UTF-8.
Status check_text(int argc, const char* const* argv) {
  for (const std::string& argument : std::vector<std::string>(argv, argv + argc)) {
    if (is_utf8(argument)) continue;
    std::string shown;
    for (const char c : argument) {
      const auto byte = static_cast<unsigned char>(c);
      shown += byte >= 0x20 && byte < 0x7F ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
    }
    return wrong(fmt::format("{}: is not UTF-8, as all arguments and names of folders must be", shown));
  }
  return {};
}

}  // namespace

Result<CommandLine> parse_command_line(int argc, const char* const* argv) {
  SYNCOPATE_RETURN_IF_ERROR(check_text(argc, argv));
  const std::vector<OptionSpec> table = option_table();
  CLI::App app;
  bind(app, table);
  CLI::App* compare = app.add_subcommand("compare")->fallthrough();
  compare->set_help_flag();
  for (const char* name : {"--modes", "--vary"}) {
    compare->add_option(name)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->expected(1);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const std::string message = error.what();
    const std::string flag = message.substr(0, message.find(':'));
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr) return wrong(message);
    return wrong(fmt::format("{0}: needs a value, as in {0}=VALUE; --help says which", flag));
  }
  if (const CLI::Option* help = app.get_option("--help"); help->count() > 0) return help_asked_for(*help, *compare);
  if (app.get_option("--version")->count() > 0) {
    CommandLine line;
    line.action = CommandLine::Action::kVersion;
    return line;
  }
  if (const std::vector<std::string> rest = app.remaining(true); !rest.empty()) return unknown(rest.front(), table);
  const Result<GivenOptions> line = given_on_line(app, table);
  if (!line.ok()) return line.status();
  const Result<GivenOptions> file = given_in_file_of(*app.get_option("--config"));
  if (!file.ok()) return file.status();
  return request_of(merge(*line, *file), *compare);
}

}  // namespace syncopate::experiments
