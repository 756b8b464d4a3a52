#include "experiments/lab/report/evals_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "common/text/split_text.h"

namespace syncopate::experiments {
namespace {

// A description names each column once. These make its header, the cells of an evaluation, and an evaluation of cells.
struct EvalHeader {
  static constexpr bool kReads = false;
  std::string text = "repeat";

  template <typename T>
  void operator()(const char* name, const T&) {
    text.append(",").append(name);
  }
  void fixed(const char* name, double value) { (*this)(name, value); }
};

struct EvalRow {
  static constexpr bool kReads = false;
  std::string text;

  void operator()(const char*, std::int64_t value) { text += fmt::format(",{}", value); }
  void operator()(const char*, double value) { text += fmt::format(",{:.6g}", value); }
  // What is no number has an empty cell.
  void operator()(const char*, const std::optional<double>& value) {
    text += value && !std::isnan(*value) ? fmt::format(",{:.6g}", *value) : ",";
  }
  void fixed(const char*, double value) { text += fmt::format(",{:.6f}", value); }
};

struct EvalCells {
  static constexpr bool kReads = true;
  const std::vector<std::string_view>& names;
  const std::vector<std::string_view>& cells;
  bool are_good = true;

  // A column that is not there leaves the value as it is.
  template <typename T>
  void operator()(std::string_view name, T& value) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) return;
    const std::string_view cell = cells[static_cast<std::size_t>(found - names.begin())];
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    are_good = are_good && error == std::errc() && end == cell.data() + cell.size();
  }
  void operator()(std::string_view name, std::optional<double>& value) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end() || cells[static_cast<std::size_t>(found - names.begin())].empty()) return;
    (*this)(name, value.emplace());
  }
  void fixed(std::string_view name, double& value) { (*this)(name, value); }
};

template <typename In, typename Eval>
void describe_eval(In& in, Eval& eval) {
  std::optional<double> accuracy = eval.accuracy, validation_accuracy, validation_loss, validation_r2;
  if (In::kReads) accuracy.reset();
  if (!In::kReads && eval.validation) {
    validation_accuracy = eval.validation->accuracy;
    validation_loss = eval.validation->loss;
    validation_r2 = eval.validation->r2;
  }
  in("epoch", eval.epoch);
  in("step", eval.step);
  in("samples_seen", eval.samples_seen);
  in.fixed("training_s", eval.training_seconds);
  in("accuracy", accuracy);
  in("loss", eval.loss);
  in("auc", eval.figures.auc);
  in("hr10", eval.figures.hit_rate);
  in("ndcg10", eval.figures.ndcg);
  in("validation_accuracy", validation_accuracy);
  in("validation_loss", validation_loss);
  in("train_loss", eval.train_loss);
  in("train_accuracy", eval.train_accuracy);
  in("r2", eval.figures.r2);
  in("rmse", eval.figures.rmse);
  in("validation_r2", validation_r2);
  if constexpr (In::kReads) {
    eval.accuracy = accuracy.value_or(std::numeric_limits<double>::quiet_NaN());
    if ((validation_accuracy || validation_r2) && validation_loss) {
      eval.validation =
          ValidationFigures{.accuracy = validation_accuracy.value_or(std::numeric_limits<double>::quiet_NaN()),
                            .loss = *validation_loss,
                            .r2 = validation_r2};
    }
  }
}

}  // namespace

std::string evals_csv_header() {
  const EvalRecord none;
  EvalHeader header;
  describe_eval(header, none);
  return header.text + "\n";
}

std::string evals_csv_row(int repeat, const EvalRecord& eval) {
  EvalRow row{.text = fmt::to_string(repeat)};
  describe_eval(row, eval);
  return row.text + "\n";
}

Result<std::vector<std::vector<EvalRecord>>> read_evals(std::string_view csv, std::size_t repeats) {
  const std::size_t end_of_header = csv.find('\n');
  const std::vector<std::string_view> names = split_text(csv.substr(0, end_of_header), ',');
  for (const char* name : {"repeat", "epoch", "step", "samples_seen", "training_s", "accuracy", "loss"}) {
    if (std::ranges::find(names, name) == names.end()) return Status::data_loss(fmt::format("has no column {}", name));
  }
  std::vector<std::vector<EvalRecord>> evals(repeats);
  csv.remove_prefix(std::min(end_of_header, csv.size() - 1) + 1);
  for (int number = 2; !csv.empty(); ++number) {
    const std::size_t end = csv.find('\n');
    const std::vector<std::string_view> cells = split_text(csv.substr(0, end), ',');
    const bool is_whole = end != std::string_view::npos && cells.size() == names.size();
    std::size_t repeat = kMostRepeatsRead;
    EvalRecord eval;
    if (is_whole) {
      EvalCells in{names, cells};
      in("repeat", repeat);
      describe_eval(in, eval);
      if (!in.are_good) repeat = kMostRepeatsRead;
    }
    if (repeat >= kMostRepeatsRead) {
      return Status::data_loss(fmt::format("line {} is no evaluation, or not whole", number));
    }
    if (repeat >= evals.size()) evals.resize(repeat + 1);
    evals[repeat].push_back(eval);
    csv.remove_prefix(end + 1);
  }
  return evals;
}

}  // namespace syncopate::experiments
