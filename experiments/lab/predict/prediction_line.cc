#include "experiments/lab/predict/prediction_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/config/nearest_name.h"
#include "experiments/config/prediction_commands.h"
#include "experiments/lab/predict/advise_text.h"
#include "experiments/lab/predict/predict_text.h"
#include "experiments/lab/predict/reproduction_text.h"

namespace syncopate::experiments {
namespace {

Result<std::string> reproduce_text(const std::vector<std::string>& words) {
  const std::vector<std::string> names = prediction::reproduction_names();
  if (words.size() != 2) {
    return Status::invalid_argument(
        fmt::format("reproduce: needs the name of one table, or all; there are {}", fmt::join(names, ", ")));
  }
  if (words[1] != "all") {
    const Result<prediction::Reproduction> table = prediction::reproduce(words[1]);
    if (table.ok()) return reproduction_text(*table);
    const std::string nearest = nearest_name(words[1], names);
    return nearest.empty() ? table.status()
                           : Status::not_found(fmt::format("{}; did you mean {}?", table.status().message(), nearest));
  }
  std::vector<prediction::Reproduction> tables;
  std::string text;
  for (const std::string& name : names) {
    SYNCOPATE_ASSIGN_OR_RETURN(prediction::Reproduction table, prediction::reproduce(name));
    text += reproduction_text(table) + "\n";
    tables.push_back(std::move(table));
  }
  return text + reproduction_summary(tables);
}

}  // namespace

bool is_prediction_line(int argc, const char* const* argv) {
  if (argc < 2 || !is_prediction_command(argv[1])) return false;
  return std::none_of(argv + 2, argv + argc, [](const std::string& word) {
    return word == "-h" || word == "--help" || word.starts_with("--help=");
  });
}

Result<std::string> prediction_text(const std::vector<std::string>& words) {
  if (words.front() == "reproduce") return reproduce_text(words);
  const std::vector<std::string> options(words.begin() + 1, words.end());
  if (words.front() == "advise") {
    SYNCOPATE_ASSIGN_OR_RETURN(const AdviseRequest request, parse_advise_request(options));
    return advise_text(request);
  }
  SYNCOPATE_ASSIGN_OR_RETURN(const PredictRequest request, parse_predict_request(options));
  return predict_text(request);
}

}  // namespace syncopate::experiments
