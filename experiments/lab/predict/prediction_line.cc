#include "experiments/lab/predict/prediction_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "common/os/whole_file.h"
#include "common/text/nearest_name.h"
#include "experiments/config/commands.h"
#include "experiments/lab/predict/advice_files.h"
#include "experiments/lab/predict/advise_text.h"
#include "experiments/lab/predict/device_prediction.h"
#include "experiments/lab/predict/fitted_files.h"
#include "experiments/lab/predict/fitted_text.h"
#include "experiments/lab/predict/predict_text.h"
#include "experiments/lab/predict/prediction_files.h"
#include "experiments/lab/predict/reproduction_files.h"
#include "experiments/lab/predict/reproduction_text.h"
#include "experiments/lab/report/results_folder.h"
#include "experiments/lab/report/text_table.h"

namespace syncopate::experiments {
namespace {

// As people list them; another command line reads the last (convergence_run.h).
std::string known_tables() {
  return fmt::format("{}, all of them (all), and convergence, which trains",
                     fmt::join(prediction::reproduction_names(), ", "));
}

Result<std::vector<prediction::Reproduction>> tables_named(const std::string& name) {
  std::vector<std::string> names = prediction::reproduction_names();
  std::vector<prediction::Reproduction> tables;
  for (const std::string& one : name == "all" ? names : std::vector{name}) {
    Result<prediction::Reproduction> table = prediction::reproduce(one);
    if (!table.ok()) {
      names.insert(names.end(), {"all", "convergence"});
      const std::string nearest = nearest_name(one, names);
      return Status::not_found(fmt::format("{}: no such table; there are {}{}", one, known_tables(),
                                           nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
    }
    tables.push_back(std::move(*table));
  }
  return tables;
}

Result<std::string> reproduce_text(const std::vector<std::string>& words) {
  SYNCOPATE_ASSIGN_OR_RETURN(const auto read, command_words(words));
  const auto& [names, given] = read;
  if (names.size() != 1) {
    return Status::invalid_argument(
        fmt::format("reproduce: needs the name of one table; there are {}", known_tables()));
  }
  if (given.contains("data-dir")) {
    return Status::invalid_argument("--data-dir: convergence alone has data; leave it out");
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<prediction::Reproduction> tables, tables_named(names.back()));
  std::string text;
  for (const prediction::Reproduction& table : tables) text += (text.empty() ? "" : "\n") + reproduction_text(table);
  if (tables.size() > 1) text += "\n" + text_table(summary_rows(tables));
  if (const auto folder = given.find("output"); folder != given.end()) {
    SYNCOPATE_RETURN_IF_ERROR(write_reproduction(tables, folder->second));
    text += fmt::format("\nresults in {}: reproduction.html, reproduction.csv\n", folder->second);
  }
  return text;
}

// Writes a page and values where a folder was asked for, and returns what is to be said of it.
Result<std::string> written(const std::string& folder, const std::string& name, const std::string& json,
                            const std::vector<FlatRow>& rows, const std::string& page) {
  SYNCOPATE_ASSIGN_OR_RETURN(const ResultsFolder taken,
                             ResultsFolder::take(folder, [&] { return check_holds_nothing(folder); }));
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(folder + "/" + name + ".json", json));
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(folder + "/" + name + ".csv", rows_csv(rows)));
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(folder + "/report.html", page));
  return fmt::format("\nresults in {0}: report.html, {1}.csv, {1}.json\n", folder, name);
}

// The folder is looked at before anything is simulated.
Result<std::string> advised_text(const std::vector<std::string>& words, const std::vector<std::string>& options,
                                 const JobRunner& run) {
  SYNCOPATE_ASSIGN_OR_RETURN(const AdviseRequest request, parse_advise_request(options));
  if (!request.output.empty()) SYNCOPATE_RETURN_IF_ERROR(check_holds_nothing(request.output));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<AdvisedSize> sizes, advised_sizes(request, run));
  const std::string text = advise_text(request, sizes), command = command_of(words);
  if (request.output.empty()) return text;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string results,
                             written(request.output, "advice", advice_json(request, sizes, command),
                                     advice_rows(request, sizes), advice_html(request, sizes, command)));
  return text + results;
}

// Writes the results where a folder was asked for.
Result<std::string> fitted_answer(const PredictRequest& request, const std::string& command) {
  const MeasuredRuns& measured = *request.measured;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<FittedWay> ways, fitted_ways(request.job, measured.runs));
  const std::string text = fitted_text(request.job, measured, ways);
  if (request.output.empty()) return text;
  SYNCOPATE_ASSIGN_OR_RETURN(
      const std::string results,
      written(request.output, "prediction", fitted_json(request.job, measured, ways, command),
              fitted_flat_rows(request.job, ways), fitted_html(request.job, measured, ways, command)));
  return text + results;
}

Result<std::string> predicted_text(const std::vector<std::string>& words, const std::vector<std::string>& options,
                                   const JobRunner& run) {
  SYNCOPATE_ASSIGN_OR_RETURN(const PredictRequest request, parse_predict_request(options));
  if (!request.output.empty()) SYNCOPATE_RETURN_IF_ERROR(check_holds_nothing(request.output));
  const std::string command = command_of(words);
  if (request.measured) return fitted_answer(request, command);
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<PredictedRow> rows, predicted_rows(request, run));
  const std::string text = predict_text(request, rows);
  if (request.output.empty()) return text;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string results,
                             written(request.output, "prediction", prediction_json(request, rows, command),
                                     prediction_rows(request, rows), prediction_html(request, rows, command)));
  return text + results;
}

Result<std::string> device_text(const std::vector<std::string>& options) {
  SYNCOPATE_ASSIGN_OR_RETURN(const DevicePrediction prediction, parse_device_prediction(options));
  return device_prediction_text(prediction);
}

// `study FOLDER... --to=workers=64,256` asks what `predict --measured=FOLDER,... --workers=64,256` does.
Result<std::vector<std::string>> options_of_study(std::span<const std::string> words) {
  std::vector<std::string> known = command_named("predict")->options;
  known.emplace_back("to");
  SYNCOPATE_ASSIGN_OR_RETURN(CommandWords read, command_words("study --to", known, words));
  const std::string to = read.given.at("to");
  read.given.erase("to");
  const std::string_view kWorkers = "workers=";
  if (!to.starts_with(kWorkers) || to.size() == kWorkers.size()) {
    return Status::invalid_argument(fmt::format("--to={}: must be --to=workers=64,256 or the like", to));
  }
  if (read.operands.empty()) {
    return Status::invalid_argument("study --to: needs the folder of a study, or of several runs of one job");
  }
  std::vector<std::string> options = {"--workers=" + to.substr(kWorkers.size()),
                                      fmt::format("--measured={}", fmt::join(read.operands, ","))};
  for (const auto& [name, value] : read.given) options.push_back(fmt::format("--{}={}", name, value));
  return options;
}

}  // namespace

bool asks_for_other_sizes(const std::vector<std::string>& words) {
  return words.front() == "study" &&
         std::any_of(words.begin(), std::ranges::find(words, "--"),
                     [](const std::string& word) { return word == "--to" || word.starts_with("--to="); });
}

Result<std::string> prediction_text(const std::vector<std::string>& words, const JobRunner& run) {
  if (words.front() == "reproduce") return reproduce_text(words);
  const std::vector<std::string> options(words.begin() + 1, words.end());
  if (asks_for_a_device(options)) {
    if (words.front() == "predict") return device_text(options);
    return Status::invalid_argument(fmt::format(
        "{}: --device: is where a run computes by itself, or what predict finds a least time for; --compute=a100 takes "
        "the typical step of a known device",
        words.front()));
  }
  if (words.front() == "advise") return advised_text(words, options, run);
  if (words.front() == "study") {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> measured, options_of_study(options));
    return predicted_text(words, measured, run);
  }
  // Elsewhere predict is a word for what a trained model does.
  if (!options.empty() && !options.front().starts_with("--")) {
    return Status::invalid_argument(
        fmt::format("predict: says how long steps will take, without a run; what a model takes each image for, says "
                    "evaluate {} --predictions=FILE.csv",
                    options.front()));
  }
  return predicted_text(words, options, run);
}

}  // namespace syncopate::experiments
