#include "experiments/lab/predict/prediction_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "common/os/whole_file.h"
#include "experiments/config/nearest_name.h"
#include "experiments/config/prediction_commands.h"
#include "experiments/lab/predict/advice_files.h"
#include "experiments/lab/predict/advise_text.h"
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

Result<std::vector<prediction::Reproduction>> tables_named(const std::string& name) {
  std::vector<std::string> names = prediction::reproduction_names();
  std::vector<prediction::Reproduction> tables;
  for (const std::string& one : name == "all" ? names : std::vector{name}) {
    Result<prediction::Reproduction> table = prediction::reproduce(one);
    if (!table.ok()) {
      names.push_back("convergence");  // which another command line reads (convergence_run.h)
      const std::string nearest = nearest_name(one, names);
      return nearest.empty()
                 ? table.status()
                 : Status::not_found(fmt::format("{}; did you mean {}?", table.status().message(), nearest));
    }
    tables.push_back(std::move(*table));
  }
  return tables;
}

Result<std::string> reproduce_text(const std::vector<std::string>& words) {
  const auto is_option = [](const std::string& word) { return word.starts_with("--"); };
  if (std::ranges::count_if(words, std::not_fn(is_option)) != 2) {
    return Status::invalid_argument(
        fmt::format("reproduce: needs the name of one table, or all; there are {}, and convergence, which trains",
                    fmt::join(prediction::reproduction_names(), ", ")));
  }
  std::vector<std::string> names, options;
  std::ranges::partition_copy(words, std::back_inserter(options), std::back_inserter(names), is_option);
  SYNCOPATE_ASSIGN_OR_RETURN(const GivenWords given, given_words("reproduce", options, {}, {"output"}));
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

constexpr std::string_view kTo = "--to=";
constexpr std::string_view kToWorkers = "--to=workers=";

// `study FOLDER... --to=workers=64,256` asks what `predict --measured=FOLDER,... --workers=64,256` does.
Result<std::vector<std::string>> options_of_study(const std::vector<std::string>& words) {
  std::vector<std::string> folders, options;
  for (const std::string& word : words) {
    if (!word.starts_with("--")) {
      folders.push_back(word);
    } else if (word.starts_with(kToWorkers) && word.size() > kToWorkers.size()) {
      options.push_back("--workers=" + word.substr(kToWorkers.size()));
    } else if (word.starts_with(kTo)) {
      return Status::invalid_argument(fmt::format("{}: must be --to=workers=64,256 or the like", word));
    } else {
      options.push_back(word);
    }
  }
  if (folders.empty()) {
    return Status::invalid_argument("study --to: needs the folder of a study, or of several runs of one job");
  }
  options.push_back(fmt::format("--measured={}", fmt::join(folders, ",")));
  return options;
}

}  // namespace

bool is_prediction_line(int argc, const char* const* argv) {
  if (argc < 2) return false;
  const bool carries_on =
      std::string_view(argv[1]) == "study" &&
      std::any_of(argv + 2, argv + argc, [](const char* word) { return std::string_view(word).starts_with(kTo); });
  if (!carries_on && !is_prediction_command(argv[1])) return false;
  return std::none_of(argv + 2, argv + argc, [](const std::string& word) {
    return word == "-h" || word == "--help" || word.starts_with("--help=");
  });
}

Result<std::string> prediction_text(const std::vector<std::string>& words, const JobRunner& run) {
  if (words.front() == "reproduce") return reproduce_text(words);
  const std::vector<std::string> options(words.begin() + 1, words.end());
  for (const std::string& word : options) {
    if (!word.starts_with("--device=")) continue;
    return Status::invalid_argument(
        fmt::format("{}: {}: is where a run computes by itself; --compute={} takes the typical step of a known device",
                    words.front(), word, word.substr(word.find('=') + 1)));
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
