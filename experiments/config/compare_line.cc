#include "experiments/config/compare_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/text/nearest_name.h"
#include "common/text/number.h"
#include "common/text/quantity.h"
#include "experiments/config/options/option_table.h"
#include "experiments/config/resolution.h"
#include "experiments/config/toml.h"
#include "experiments/config/variation.h"

namespace syncopate::experiments {
namespace {

constexpr int kMostJobs = 1024;
constexpr double kMostPrice = 1e9;
constexpr double kLeastPercent = 0.1, kMostPercent = 50;
constexpr double kUsualLimit = 60, kMostLimit = 86400;  // seconds
constexpr int kMostAutoRounds = 30;

// Fails for options that a comparison sets in another way, or that make no sense in one.
Status check_given(const GivenOptions& given) {
  for (const OptionSpec& option : option_table()) {
    if (!option.of_mode || !given.contains(option.name)) continue;
    return Status::invalid_argument(fmt::format("--{}={}: compare takes its modes from --modes, as in --modes={}",
                                                option.name, given.at(option.name), kUsualModes));
  }
  if (given.contains("stop-at-target")) {
    return Status::invalid_argument(
        "--stop-at-target: the runs of a comparison train equally long; leave it out, or give it to one run");
  }
  for (const char* name : {"checkpoint-every", "resume", "checkpoint-key-file"}) {
    if (!given.contains(name)) continue;
    return Status::invalid_argument(fmt::format(
        "--{}={}: compare measures runs from their beginning to their end; give it to one run", name, given.at(name)));
  }
  return {};
}

// For finished runs only the output folder can be given.
Result<CommandLine> finished_runs(const GivenOptions& given, const CompareWords& words) {
  for (const auto& [name, value] : given) {
    if (name == "output") continue;
    return Status::invalid_argument(
        fmt::format("--{}={}: {} is a finished run, and compare trains none anew beside it; leave one out, or put -- "
                    "before a program of "
                    "your own",
                    name, value, words.folders.front()));
  }
  if (words.modes || words.rate_rule || words.tune_rate || words.jobs || words.repeat_limit || !words.vary.empty()) {
    return Status::invalid_argument(
        fmt::format("{}: finished runs are compared as they are; leave --modes, --vary, --rate-rule, --tune-rate, "
                    "--repeat-limit and --jobs out",
                    words.folders.front()));
  }
  if (words.folders.size() < 2) {
    return Status::invalid_argument(
        fmt::format("{}: is one folder of results; name two or more to compare them", words.folders.front()));
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const RunRequest config, apply_options(given));
  CommandLine line;
  line.action = CommandLine::Action::kCompareFinished;
  line.config = config;
  line.given = given;
  line.folders = words.folders;
  return line;
}

// Returns the options that --vary names. Each must be named once and not be given otherwise.
Result<std::vector<Variation>> variations_of(const CompareWords& words, const GivenOptions& given) {
  std::vector<Variation> variations;
  GivenOptions all = given;
  for (const std::string& text : words.vary) {
    SYNCOPATE_ASSIGN_OR_RETURN(Variation variation, parse_variation(text));
    const std::string& option = variation.option;
    if (given.contains(option)) {
      return Status::invalid_argument(
          fmt::format("--{}={}: given beside --vary={}; leave one out", option, given.at(option), text));
    }
    if (!all.emplace(option, text).second) {
      return Status::invalid_argument(
          fmt::format("--vary={}: {} is varied twice; put all values into one", text, option));
    }
    variations.push_back(std::move(variation));
  }
  for (const OptionSpec& option : option_table()) {
    const bool is_varied = std::ranges::find(variations, option.name, &Variation::option) != variations.end();
    const bool other_is = std::ranges::find(variations, option.excludes, &Variation::option) != variations.end();
    if (option.excludes.empty() || !all.contains(option.name) || !all.contains(option.excludes)) continue;
    if (!is_varied && !other_is) continue;  // apply_options reports it
    return Status::invalid_argument(
        fmt::format("--vary: {} cannot stand beside {}; give one of the two", option.name, option.excludes));
  }
  return variations;
}

// linear and per-sample scale in the same way: together they would do it twice.
Status check_linear(CommandLine& line) {
  if (line.rate_rule == RateRule::kPerUpdate) return {};
  const auto is_linear = [](const ComparedRun& run) {
    return workers_of(run.config) > 1 && run.config.lr_schedule.linear_scaling;
  };
  const auto first = std::ranges::find_if(line.runs, is_linear);
  if (first == line.runs.end()) return {};
  const std::string reason = fmt::format(
      "--lr-schedule={}: --rate-rule=per-sample, the default, already gives each row a rate that grows with its "
      "update's minibatch; leave linear out, or add --rate-rule=per-update",
      to_string(first->config.lr_schedule));
  if (std::ranges::find(line.varied, "lr-schedule") == line.varied.end()) return Status::invalid_argument(reason);
  for (const ComparedRun& run : line.runs) {
    if (is_linear(run)) line.left_out.push_back(fmt::format("{}: left out: {}", run.label, reason));
  }
  std::erase_if(line.runs, is_linear);
  return line.runs.empty() ? Status::invalid_argument(reason) : Status();
}

Status settle_rates(const GivenOptions& given, const CompareWords& words, CommandLine& line) {
  for (const auto& [name, word] :
       {std::pair("rate-rule", &words.rate_rule), std::pair("tune-rate", &words.tune_rate)}) {
    if (!*word || !runs_command(line.config)) continue;
    return Status::invalid_argument(fmt::format("--{}={}: a program of your own ({}) has its own rate; leave it out",
                                                name, **word, command_of(line.config)));
  }
  if (words.rate_rule) {
    SYNCOPATE_ASSIGN_OR_RETURN(line.rate_rule, parse_rate_rule(*words.rate_rule));
  }
  if (words.tune_rate) {
    SYNCOPATE_ASSIGN_OR_RETURN(RateGrid grid, parse_rate_grid(*words.tune_rate));
    if (std::ranges::find(line.varied, "learning-rate") != line.varied.end()) {
      return Status::invalid_argument(fmt::format(
          "--tune-rate={}: chooses each row's learning rate, which --vary sets; leave one out", *words.tune_rate));
    }
    if (!grid.factors && given.contains("learning-rate")) {
      return Status::invalid_argument(
          fmt::format("--learning-rate={}: has no effect beside the rates of --tune-rate={}; leave it out, or "
                      "give factors of it, as in --tune-rate=x0.25,x1,x4",
                      given.at("learning-rate"), *words.tune_rate));
    }
    line.tune_rate = std::move(grid);
  }
  SYNCOPATE_RETURN_IF_ERROR(check_linear(line));
  line.reference_samples = reference_samples(line.config);
  apply_rate_rule(line.runs, line.rate_rule, line.reference_samples);
  return {};
}

Result<std::optional<prediction::HostPrices>> prices_of(const CompareWords& words) {
  using Prices = std::optional<prediction::HostPrices>;
  if (!words.price_worker && !words.price_server) return Prices();
  Prices prices(std::in_place);
  for (const auto& [name, given, price] : {std::tuple("price-worker", &words.price_worker, &prices->worker),
                                           std::tuple("price-server", &words.price_server, &prices->server)}) {
    if (!*given) {
      return Status::invalid_argument(
          fmt::format("--{} is missing beside the other price: give both, 0 for what costs nothing", name));
    }
    const std::optional<double> value = parse_number<double>(**given);
    if (!value || !(*value >= 0 && *value <= kMostPrice)) {
      return Status::invalid_argument(
          fmt::format("--{}={}: must be 0 to {:g}, for a process and hour", name, **given, kMostPrice));
    }
    *price = *value;
  }
  return prices;
}

// Simulated runs can be carried out several at once.
Status read_jobs(const CompareWords& words, CommandLine& line) {
  const bool is_simulated = line.config.cluster == ClusterKind::kSimulated;
  if (!words.jobs) return {};
  const auto jobs = parse_number<int>(*words.jobs);
  if (!jobs || *jobs < 1 || *jobs > kMostJobs) {
    return Status::invalid_argument(fmt::format("--jobs={}: must be 1 to {}", *words.jobs, kMostJobs));
  }
  if (!is_simulated && *jobs > 1) {
    return Status::invalid_argument(
        fmt::format("--jobs={}: real runs would take the machine from each other; leave it out, or add "
                    "--cluster=simulated",
                    *words.jobs));
  }
  line.jobs = *jobs;
  return {};
}

// Reads how many rounds there are to be. Takes --repeat=auto, which a number of rounds cannot say, out of `given`;
// without --repeat, compare has it, too, and a study one round.
Status take_auto_rounds(GivenOptions& given, const CompareWords& words, CommandLine& line) {
  constexpr std::string_view kAuto = "auto";
  const auto repeat = given.find("repeat");
  const bool is_asked = repeat != given.end() && repeat->second.starts_with(kAuto);
  const bool is_usual = repeat == given.end() && words.vary.empty();
  if (!is_asked && !is_usual) {
    if (!words.repeat_limit) return {};
    return Status::invalid_argument(
        fmt::format("--repeat-limit={}: ends the rounds of --repeat=auto; {}", *words.repeat_limit,
                    repeat == given.end() ? "add that" : "leave it out, or leave --repeat out"));
  }
  AutoRounds rounds;
  if (is_asked && repeat->second != kAuto) {
    const std::string rest = repeat->second.substr(kAuto.size());
    const bool is_percent = rest.starts_with(":") && rest.ends_with("%");
    const auto percent = is_percent ? parse_number<double>(rest.substr(1, rest.size() - 2)) : std::nullopt;
    if (!percent || !(*percent >= kLeastPercent && *percent <= kMostPercent)) {
      return Status::invalid_argument(fmt::format("--repeat={}: must be auto, or auto:{}% to auto:{}%", repeat->second,
                                                  kLeastPercent, kMostPercent));
    }
    rounds.margin = *percent / 100;
  }
  if (is_usual) rounds.seconds = kUsualLimit;
  if (words.repeat_limit) {
    rounds.seconds = parse_in_unit(*words.repeat_limit, "seconds");
    if (!rounds.seconds || !(*rounds.seconds >= 1 && *rounds.seconds <= kMostLimit)) {
      return Status::invalid_argument(fmt::format("--repeat-limit={}: must be 1 to {:g} seconds{}", *words.repeat_limit,
                                                  kMostLimit, unit_hint("seconds")));
    }
  }
  line.auto_rounds = rounds;
  if (is_asked) given.erase(repeat);
  return {};
}

// Moves the value of an entry that is the study's own to where it belongs. Returns whether it is one.
bool takes_own(const std::pair<std::string, std::string>& entry, CompareWords& words) {
  constexpr std::string_view kVary = "vary.";
  const auto& [name, value] = entry;
  if (name.starts_with(kVary)) {
    words.vary.push_back(fmt::format("{}={}", name.substr(kVary.size()), value));
    return true;
  }
  const auto known = std::ranges::find(kCompareOptions, name, &CompareOption::name);
  if (known == std::end(kCompareOptions) || words.*known->word) return false;
  words.*known->word = value;
  return true;
}

// A name that neither a run nor a comparison has is compared with those of both.
Status check_name(const std::string& name) {
  std::vector<std::string> known;
  for (const CompareOption& option : kCompareOptions) known.emplace_back(option.name);
  for (const OptionSpec& option : option_table()) {
    if (option.name == name) return {};
    if (!option.of_mode) known.push_back(option.name);
  }
  return Status::invalid_argument(unknown_entry(name, known));
}

std::string varied_option(const std::string& vary) { return vary.substr(0, vary.find('=')); }

}  // namespace

Result<StudyFile> read_study(std::string_view toml) {
  SYNCOPATE_ASSIGN_OR_RETURN(auto entries, read_toml(toml));
  StudyFile study;
  std::erase_if(entries, [&](const auto& entry) { return takes_own(entry, study.words); });
  for (const auto& [name, value] : entries) SYNCOPATE_RETURN_IF_ERROR(check_name(name));
  SYNCOPATE_ASSIGN_OR_RETURN(study.given, given_in_entries(entries));
  return study;
}

StudyFile merge(const StudyFile& line, StudyFile file) {
  StudyFile merged{.given = {}, .words = line.words};
  std::erase_if(file.words.vary, [&](const std::string& vary) {
    const std::string option = varied_option(vary);
    return line.given.contains(option) ||
           std::ranges::find(line.words.vary, option, varied_option) != line.words.vary.end();
  });
  for (const std::string& vary : line.words.vary) file.given.erase(varied_option(vary));
  merged.given = merge(line.given, std::move(file.given));
  merged.words.vary.insert(merged.words.vary.end(), file.words.vary.begin(), file.words.vary.end());
  for (const auto& [name, word] : kCompareOptions) {
    if (!(merged.words.*word)) merged.words.*word = std::move(file.words.*word);
  }
  return merged;
}

Result<CommandLine> study_line(const GivenOptions& given, const CompareWords& words) {
  if (words.vary.empty()) {
    return Status::invalid_argument(
        "study: varies nothing; name what, as in --vary=workers=1,2,4, or say compare to run each mode once");
  }
  Result<CommandLine> line = compare_line(given, words);
  if (line.ok()) line->action = CommandLine::Action::kStudy;
  return line;
}

Result<CommandLine> compare_line(const GivenOptions& asked, const CompareWords& words) {
  GivenOptions given = asked;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<prediction::HostPrices> prices, prices_of(words));
  if (!words.folders.empty()) {
    Result<CommandLine> finished = finished_runs(given, words);
    if (finished.ok()) finished->prices = prices;
    return finished;
  }
  SYNCOPATE_RETURN_IF_ERROR(check_given(given));
  CommandLine line;
  SYNCOPATE_RETURN_IF_ERROR(take_auto_rounds(given, words, line));
  SYNCOPATE_ASSIGN_OR_RETURN(RunRequest config, apply_options(given));
  if (line.auto_rounds) config.repeat = kMostAutoRounds;
  line.action = CommandLine::Action::kCompare;
  line.config = config;
  line.given = given;
  line.prices = prices;
  SYNCOPATE_RETURN_IF_ERROR(read_jobs(words, line));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<Variation> variations, variations_of(words, given));
  const std::string_view usual = runs_command(config) ? kUsualModesOfCommand : kUsualModes;
  const std::string modes = words.modes.value_or(std::string(usual));
  const bool is_every = modes == kEveryMode;
  if (variations.empty() && !is_every) {
    SYNCOPATE_ASSIGN_OR_RETURN(line.runs, comparison_runs(config, modes));
  } else {
    SYNCOPATE_ASSIGN_OR_RETURN(VariedRuns varied,
                               varied_runs(config, is_every ? std::string(kAllModes) : modes, variations));
    line.runs = std::move(varied.runs);
    line.left_out = std::move(varied.left_out);
  }
  for (const Variation& variation : variations) {
    line.varied.push_back(variation.option);
    SYNCOPATE_RETURN_IF_ERROR(set_varied(line.config, variation.option, variation.values.front()));
  }
  SYNCOPATE_RETURN_IF_ERROR(settle_rates(given, words, line));
  std::vector<ResolvedRun> configs;
  for (const ComparedRun& run : line.runs) configs.push_back(presumed(run.config));
  SYNCOPATE_RETURN_IF_ERROR(check_effect(given, configs, "--modes"));
  return line;
}

}  // namespace syncopate::experiments
