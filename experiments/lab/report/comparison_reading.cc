#include "experiments/lab/report/comparison_reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "experiments/lab/report/json_members.h"
#include "experiments/lab/report/paired_comparison.h"
#include "experiments/lab/report/report_json.h"
#include "experiments/lab/report/summary_reading.h"

namespace syncopate::experiments {
namespace {

constexpr std::size_t kMostReadRounds = 1000;  // more than --repeat allows

double number_or_none(const JsonMembers& members, const char* name) {
  return members.maybe_number(name).value_or(std::numeric_limits<double>::quiet_NaN());
}

std::vector<EvalRecord> read_evaluations(const JsonMembers& round) {
  std::vector<EvalRecord> evals;
  for (const ReadJson& one : round.list("evaluations")) {
    if (!one.is_object()) continue;
    const JsonMembers members = round.of(one);
    EvalRecord eval{.epoch = members.number("epoch"),
                    .step = members.count("step"),
                    .samples_seen = members.count("samples_seen"),
                    .training_seconds = members.number("training_seconds"),
                    .accuracy = number_or_none(members, "accuracy"),
                    .loss = number_or_none(members, "loss"),
                    .figures = {.auc = members.maybe_number("auc"),
                                .hit_rate = members.maybe_number("hr10"),
                                .ndcg = members.maybe_number("ndcg10"),
                                .r2 = members.maybe_number("r2"),
                                .rmse = members.maybe_number("rmse")},
                    .train_loss = members.maybe_number("train_loss"),
                    .train_accuracy = members.maybe_number("train_accuracy")};
    if (members.has("validation_accuracy") || members.has("validation_r2")) {
      eval.validation = ValidationFigures{.accuracy = number_or_none(members, "validation_accuracy"),
                                          .loss = number_or_none(members, "validation_loss"),
                                          .r2 = members.maybe_number("validation_r2")};
    }
    evals.push_back(std::move(eval));
  }
  return evals;
}

void read_rounds(const JsonMembers& members, ComparedRow& row) {
  for (const ReadJson& one : members.list("rounds")) {
    row.rounds.emplace_back();
    row.evals.emplace_back();
    row.seeds.push_back(0);
    row.folders.emplace_back();
    if (!one.is_object()) continue;
    const JsonMembers round = members.of(one);
    row.rounds.back() = read_report(round);
    row.evals.back() = read_evaluations(round);
    if (round.has("seed")) row.seeds.back() = static_cast<std::uint64_t>(round.count("seed"));
    if (round.has("folder")) row.folders.back() = round.lines("folder");
  }
}

StepParts read_step_parts(const JsonMembers& members) {
  StepParts step{.ideal_ms = members.number("ideal_ms"),
                 .measured_ms = members.number("measured_ms"),
                 .parts = {},
                 .why = members.lines("why"),
                 .samples_per_second = members.number("samples_per_second"),
                 .predicted = members.maybe_number("predicted_samples_per_second")};
  const JsonMembers parts = members.object("parts_ms");
  for (const std::string& name : members.texts("parts_in_order")) {
    step.parts.emplace_back(name, parts.number(name.c_str()));
  }
  return step;
}

std::vector<TrainingPiece> read_training(const JsonMembers& members) {
  const std::vector<double> seconds = members.numbers("training_seconds"), steps = members.numbers("steps"),
                            samples = members.numbers("samples"), loss = members.numbers("loss");
  std::vector<TrainingPiece> training;
  for (std::size_t i = 0; i < std::min({seconds.size(), steps.size(), samples.size(), loss.size()}); ++i) {
    training.push_back({.seconds = seconds[i], .steps = steps[i], .samples = samples[i], .loss = loss[i]});
  }
  return training;
}

ComparedRow read_row(const JsonMembers& members, const std::vector<std::string>& varied) {
  for (const char* name : {"label", "mode", "rounds"}) members.require(name);
  ComparedRow row{.label = members.lines("label"),
                  .mode = members.lines("mode"),
                  .values = {},
                  .rate = members.maybe_number("learning_rate").value_or(0),
                  .workers = static_cast<int>(members.count("workers")),
                  .servers = static_cast<int>(members.count("servers")),
                  .batch_size = static_cast<int>(members.count("batch_size")),
                  .updates_a_pass = members.maybe_number("updates_a_pass").value_or(0),
                  .parameters = members.count("parameters")};
  const JsonMembers values = members.object("values");
  for (const std::string& option : varied) {
    if (values.has(option.c_str())) row.values.emplace_back(option, values.lines(option.c_str()));
  }
  read_rounds(members, row);
  if (members.has("step_parts")) row.step = read_step_parts(members.object("step_parts"));
  if (members.has("training_curve")) row.training = read_training(members.object("training_curve"));
  return row;
}

// Returns the rows of each round in the order in which they ran; labels that are none of a row are left out.
std::vector<std::vector<std::size_t>> read_order(const JsonMembers& members, const std::vector<ComparedRow>& rows) {
  std::vector<std::vector<std::size_t>> order;
  for (const ReadJson& round : members.list("order")) {
    order.emplace_back();
    if (!round.is_array()) continue;
    for (const ReadJson& label : round) {
      const auto row = std::ranges::find_if(
          rows, [&](const ComparedRow& one) { return label.is_string() && one.label == label.get<std::string>(); });
      if (row != rows.end()) order.back().push_back(static_cast<std::size_t>(row - rows.begin()));
    }
  }
  return order;
}

// Makes the number of rounds the same in all rows.
void make_equal(std::vector<ComparedRow>& rows) {
  std::size_t most = 0;
  for (const ComparedRow& row : rows) most = std::max(most, row.rounds.size());
  for (ComparedRow& row : rows) {
    row.rounds.resize(most);
    row.evals.resize(most);
    row.seeds.resize(most);
    row.folders.resize(most);
  }
}

}  // namespace

Result<ComparisonReport> read_comparison(std::string_view json) {
  SYNCOPATE_ASSIGN_OR_RETURN(const ReadJson whole, json_object_in(json));
  std::string error;
  const JsonMembers members(whole, error);
  for (const char* name : {"job", "outcome", "in_rounds", "rounds_asked", "rows"}) members.require(name);
  ComparisonReport report{
      .job = members.lines("job"),
      .command = members.lines("command"),
      .config_toml = members.lines("config"),
      .started = members.text("started"),
      .version = members.text("version"),
      .machine = environment_of(members.object("machine")),
      .rate_rule = members.text("rate_rule"),
      .target = members.maybe_number("target").value_or(0),
      .prices = {},
      .simulated = members.flag("simulated"),
      .is_certain = members.flag("is_certain"),
      .in_rounds = members.flag("in_rounds"),
      .rounds_asked = static_cast<std::size_t>(std::max<std::int64_t>(1, members.count("rounds_asked"))),
      .analyses = std::clamp(static_cast<std::size_t>(members.has("analyses") ? members.count("analyses") : 1),
                             std::size_t{1}, kMostAnalyses),
      .margin = members.maybe_number("margin").value_or(0),
      .varied = members.texts("varied"),
      .left_out = members.texts("left_out"),
      .notes = members.texts("notes"),
      .outcome = members.lines("outcome")};
  if (!members.has("simulated"))
    report.simulated = report.config_toml.find("cluster = \"simulated\"") != std::string::npos;
  if (members.has("prices")) {
    const JsonMembers prices = members.object("prices");
    report.prices = prediction::HostPrices{.worker = prices.number("worker"), .server = prices.number("server")};
  }
  for (const ReadJson& row : members.list("rows")) {
    if (!row.is_object()) return Status::data_loss("rows must be a list of objects");
    report.rows.push_back(read_row(members.of(row), report.varied));
    if (report.rows.back().rounds.size() > kMostReadRounds) {
      return Status::data_loss(fmt::format("a row has more than {} rounds", kMostReadRounds));
    }
  }
  make_equal(report.rows);
  report.order = read_order(members, report.rows);
  for (const ReadJson& one : members.list("rate_trials")) {
    if (!one.is_object()) return Status::data_loss("rate_trials must be a list of objects");
    const JsonMembers trial = members.of(one);
    report.trials.push_back(
        {trial.lines("label"), trial.number("learning_rate"), trial.numbers("quality"), trial.numbers("loss")});
  }
  if (!error.empty()) return Status::data_loss(error);
  if (report.rows.empty()) return Status::data_loss("has no rows");
  return report;
}

}  // namespace syncopate::experiments
