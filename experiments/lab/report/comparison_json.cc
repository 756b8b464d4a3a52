#include <nlohmann/json.hpp>

#include "experiments/lab/report/comparison_figures.h"
#include "experiments/lab/report/comparison_files.h"
#include "experiments/lab/report/comparison_words.h"
#include "experiments/lab/report/crossover.h"
#include "experiments/lab/report/report_json.h"
#include "experiments/lab/report/scaling.h"
#include "experiments/lab/report/summary_json.h"

namespace syncopate::experiments {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json above_zero(double value) { return value > 0 ? Json(value) : Json(nullptr); }

Json interval_json(const std::optional<Interval>& interval) {
  return interval ? Json{interval->low, interval->high} : Json(nullptr);
}

Json estimate_json(const Estimate& estimate) {
  if (estimate.count == 0) return nullptr;
  return {{"rounds", estimate.count},
          {"mean", estimate.mean},
          {"least", estimate.least},
          {"most", estimate.most},
          {"interval", interval_json(estimate.interval)}};
}

Json difference_json(const Difference& difference, const std::string& higher, const std::string& lower) {
  if (difference.pairs == 0) return nullptr;
  return {{"rounds", difference.pairs},
          {"estimate", difference.estimate},
          {"interval", interval_json(difference.interval)},
          {"p", difference.interval ? Json(difference.p) : Json(nullptr)},
          {"verdict", words_of(difference.verdict, higher, lower)}};
}

Json machine_json(const Environment& machine) {
  return {{"host", machine.host},     {"kernel", machine.kernel},         {"cpu_model", machine.cpu_model},
          {"cores", machine.cores},   {"memory_gib", machine.memory_gib}, {"compiler", machine.compiler},
          {"build", machine.build},   {"vector_set", machine.vector_set}, {"sanitizers", machine.sanitizers},
          {"commit", machine.commit}, {"libraries", machine.libraries}};
}

Json evals_json(const std::vector<EvalRecord>& evals) {
  Json all = Json::array();
  for (const EvalRecord& eval : evals) {
    all.push_back({{"training_seconds", eval.training_seconds},
                   {"samples_seen", eval.samples_seen},
                   {"epoch", eval.epoch},
                   {"step", eval.step},
                   {"accuracy", eval.accuracy},
                   {"headline", headline_of(eval.accuracy, eval.figures)},
                   {"loss", eval.loss},
                   {"auc", or_null(eval.figures.auc)},
                   {"hr10", or_null(eval.figures.hit_rate)},
                   {"ndcg10", or_null(eval.figures.ndcg)},
                   {"r2", or_null(eval.figures.r2)},
                   {"rmse", or_null(eval.figures.rmse)},
                   {"train_loss", or_null(eval.train_loss)},
                   {"train_accuracy", or_null(eval.train_accuracy)}});
    if (!eval.validation) continue;
    all.back()["validation_accuracy"] = eval.validation->accuracy;
    if (eval.validation->r2) all.back()["validation_r2"] = *eval.validation->r2;
    all.back()["validation_loss"] = eval.validation->loss;
  }
  return all;
}

// A round that did not complete is null.
Json rounds_json(const ComparedRow& row) {
  Json all = Json::array();
  for (std::size_t round = 0; round < row.rounds.size(); ++round) {
    if (!row.rounds[round]) {
      all.push_back(nullptr);
      continue;
    }
    Json one = {{"round", round},
                {"seed", round < row.seeds.size() ? Json(row.seeds[round]) : Json(nullptr)},
                {"folder", round < row.folders.size() ? Json(row.folders[round]) : Json(nullptr)}};
    one.update(report_json(*row.rounds[round]));
    one["evaluations"] = round < row.evals.size() ? evals_json(row.evals[round]) : Json::array();
    all.push_back(std::move(one));
  }
  return all;
}

Json step_json(const std::optional<StepParts>& step) {
  if (!step) return nullptr;
  Json parts = Json::object(), order = Json::array();
  for (const auto& [name, ms] : step->parts) {
    parts[name] = ms;
    order.push_back(name);
  }
  return {{"ideal_ms", step->ideal_ms},
          {"parts_ms", parts},
          {"parts_in_order", order},
          {"measured_ms", step->measured_ms},
          {"why", step->why},
          {"samples_per_second", step->samples_per_second},
          {"predicted_samples_per_second", or_null(step->predicted)}};
}

Json curve_json(const std::vector<TrainingPiece>& training) {
  Json seconds = Json::array(), steps = Json::array(), samples = Json::array(), loss = Json::array();
  for (const TrainingPiece& piece : training) {
    seconds.push_back(piece.seconds);
    steps.push_back(piece.steps);
    samples.push_back(piece.samples);
    loss.push_back(piece.loss);
  }
  return {{"training_seconds", seconds}, {"steps", steps}, {"samples", samples}, {"loss", loss}};
}

Json row_json(const ComparedRow& row, const RowFigures& figures) {
  Json values = Json::object();
  for (const auto& [option, value] : row.values) values[option] = value;
  return {{"label", row.label},
          {"mode", row.mode},
          {"values", values},
          {"learning_rate", above_zero(row.rate)},
          {"updates_a_pass", above_zero(row.updates_a_pass)},
          {"parameters", row.parameters},
          {"samples_per_second", estimate_json(figures.samples_per_second)},
          {"speed_ratio", difference_json(figures.speed, "faster", "slower")},
          {"noise_between_rounds", or_null(figures.noise)},
          {"workers", row.workers},
          {"servers", row.servers},
          {"batch_size", row.batch_size},
          {"server_megabytes_per_step", or_null(figures.server_megabytes)},
          {"cost", or_null(figures.cost)},
          {"cost_to_target", or_null(figures.cost_to_target)},
          {"training_seconds", estimate_json(figures.training_seconds)},
          {"step_parts", step_json(row.step)},
          {"training_curve", curve_json(row.training)},
          {"window_samples_per_second_median", or_null(figures.window_samples)},
          {"quality", estimate_json(figures.quality)},
          {"quality_difference", difference_json(figures.quality_gain, "better", "worse")},
          {"seconds_to_target", estimate_json(figures.to_target)},
          {"seconds_to_target_ratio", difference_json(figures.target_ratio, "later", "sooner")},
          {"seconds_to_target_resolution", or_null(figures.resolution)},
          {"rounds", rounds_json(row)}};
}

Json prices_json(const std::optional<prediction::HostPrices>& prices) {
  return prices ? Json{{"worker", prices->worker}, {"server", prices->server}} : Json(nullptr);
}

Json trials_json(const std::vector<RateTrial>& trials) {
  Json all = Json::array();
  for (const RateTrial& trial : trials) {
    all.push_back(
        {{"label", trial.label}, {"learning_rate", trial.rate}, {"quality", trial.quality}, {"loss", trial.loss}});
  }
  return all;
}

Json scaling_json(const ComparisonReport& report) {
  Json all = Json::array();
  for (const ScalingCurve& curve : scaling_of(report)) {
    for (const ScalingPoint& point : curve.points) {
      all.push_back({{"label", report.rows[point.row].label},
                     {"curve", curve.name},
                     {"workers", point.workers},
                     {"speed_up", point.speedup.estimate},
                     {"interval", interval_json(point.speedup.interval)},
                     {"efficiency", point.efficiency}});
    }
  }
  return all;
}

Json crossovers_json(const ComparisonReport& report) {
  Json all = Json::array();
  for (const Crossover& one : crossovers_of(report)) {
    all.push_back({{"option", one.option},
                   {"others", one.others},
                   {"faster_below", one.below},
                   {"faster_above", one.above},
                   {"at", one.at},
                   {"between", {one.between.low, one.between.high}},
                   {"judged", one.is_judged}});
  }
  return all;
}

Json order_json(const ComparisonReport& report) {
  Json rounds = Json::array();
  for (const std::vector<std::size_t>& round : report.order) {
    Json labels = Json::array();
    for (const std::size_t row : round) labels.push_back(report.rows.at(row).label);
    rounds.push_back(std::move(labels));
  }
  return rounds;
}

}  // namespace

std::string comparison_json(const ComparisonReport& report) {
  const ComparisonFigures figures = figures_of(report);
  Json rows = Json::array();
  for (std::size_t i = 0; i < report.rows.size(); ++i) rows.push_back(row_json(report.rows[i], figures.rows[i]));
  const Json json = {{"job", report.job},
                     {"command", report.command},
                     {"started", report.started},
                     {"version", report.version},
                     {"outcome", report.outcome},
                     {"machine", machine_json(report.machine)},
                     {"config", report.config_toml},
                     {"varied", report.varied},
                     {"rate_rule", report.rate_rule},
                     {"target", above_zero(report.target)},
                     {"quality_is", figures.quality},
                     {"in_rounds", report.in_rounds},
                     {"simulated", report.simulated},
                     {"is_certain", report.is_certain},
                     {"prices", prices_json(report.prices)},
                     {"rounds_asked", report.rounds_asked},
                     {"rounds_to_judge", kFewestRounds},
                     {"analyses", report.analyses},
                     {"margin", above_zero(report.margin)},
                     {"order", order_json(report)},
                     {"rows", rows},
                     {"scaling", scaling_json(report)},
                     {"crossovers", crossovers_json(report)},
                     {"rate_trials", trials_json(report.trials)},
                     {"left_out", report.left_out},
                     {"notes", report.notes},
                     {"caveats", caveats(report, figures)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace syncopate::experiments
