#include "experiments/lab/run_page/curve_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "common/text/format.h"
#include "experiments/cluster/control/test_figures.h"
#include "experiments/lab/report/mode_colours.h"
#include "experiments/lab/report/mode_of.h"
#include "experiments/lab/why/causes.h"

namespace syncopate::experiments {
namespace {

constexpr std::size_t kMostTrainingPieces = 100;
constexpr std::size_t kMostThroughputPieces = 60;
constexpr int kGreyLine = 8;
constexpr int kHeldOutColour = 4, kHeldOutMarker = 1;

// What a chart is drawn over, and where it finds that.
struct Across {
  const char* name;
  std::string label;
  double TrainingPiece::*of_piece;
  std::function<double(const EvalRecord& eval)> of_eval;
};

// Returns the samples of all workers after each step, in the order in which steps ended.
std::vector<double> samples_after_steps(const RecordedSteps& recorded) {
  std::vector<double> samples;
  double sum = 0;
  for (const StepOfWorker& each : recorded.by_end()) samples.push_back(sum += static_cast<double>(each.step->samples));
  return samples;
}

std::vector<Across> all_across(const ReportedRun& run) {
  return {{"time", run.time_label("seconds of training"), &TrainingPiece::seconds,
           [](const EvalRecord& eval) { return eval.training_seconds; }},
          {"steps", "steps of all workers", &TrainingPiece::steps,
           [samples = samples_after_steps(run.recorded.steps)](const EvalRecord& eval) {
             const auto seen = static_cast<double>(eval.samples_seen);
             const auto after = std::ranges::upper_bound(samples, seen);
             return static_cast<double>(after - samples.begin());
           }},
          {"samples", "samples of all workers", &TrainingPiece::samples,
           [](const EvalRecord& eval) { return static_cast<double>(eval.samples_seen); }}};
}

// A chart with a view for each thing that it can be drawn over.
template <typename SeriesOver>
Chart switchable(const ReportedRun& run, const std::string& title, const ChartAxis& y, SeriesOver&& series_over) {
  Chart chart{.title = title, .x = {}, .y = y, .series = {}};
  for (const Across& across : all_across(run)) {
    const ChartAxis x{.label = across.label, .from_zero = true};
    if (chart.view.empty()) {
      chart.view = across.name;
      chart.x = x;
      chart.series = series_over(across);
    } else {
      chart.others.push_back({.name = across.name, .x = x, .series = series_over(across)});
    }
  }
  return chart;
}

ChartSeries of_evaluations(const ReportedRun& run, const Across& across, const std::string& name, int colour,
                           std::optional<double> (*figure)(const EvalRecord&)) {
  ChartSeries series{.name = name, .points = {}, .colour = colour};
  for (const EvalRecord& eval : run.evals) {
    if (const std::optional<double> y = figure(eval)) series.points.push_back({across.of_eval(eval), *y});
  }
  return series;
}

// Adds curves of what was held out and of training, where the run has them.
void add_if_any(ChartSeries series, std::vector<ChartSeries>& all) {
  if (!series.points.empty()) all.push_back(std::move(series));
}

ChartSeries of_validation(const ReportedRun& run, const Across& across, const std::string& name,
                          std::optional<double> (*figure)(const EvalRecord&)) {
  ChartSeries series = of_evaluations(run, across, name, kHeldOutColour, figure);
  series.marker = kHeldOutMarker;
  return series;
}

Chart loss_chart(const ReportedRun& run, int colour) {
  const std::size_t steps = run.recorded.steps.count();
  const std::size_t most = pieces_of(steps, run.explained.pace.workers, kMostTrainingPieces);
  const std::vector<TrainingPiece> pieces = training_pieces(run.recorded.steps, most);
  const std::string label =
      fmt::format("loss, {}", loss_unit(run.evals.empty() ? TestFigures() : run.evals.back().figures));
  Chart chart = switchable(run, "Loss", {.label = label, .from_zero = true}, [&](const Across& across) {
    ChartSeries training{.name = "training, mean of batches", .points = {}, .marked = false, .colour = kGreyLine};
    for (const TrainingPiece& piece : pieces) training.points.push_back({piece.*across.of_piece, piece.loss});
    std::vector<ChartSeries> all;
    add_if_any(std::move(training), all);
    add_if_any(of_evaluations(run, across, "test set", colour,
                              [](const EvalRecord& eval) { return std::optional(eval.loss); }),
               all);
    add_if_any(of_validation(run, across, "validation",
                             [](const EvalRecord& eval) {
                               return eval.validation ? std::optional(eval.validation->loss) : std::nullopt;
                             }),
               all);
    return all;
  });
  chart.note = fmt::format("Training loss: means of {} steps of all workers each.", (steps + most - 1) / most);
  return chart;
}

Chart quality_chart(const ReportedRun& run, int colour) {
  const std::string name = run.evals.empty() ? "accuracy" : headline_name(run.evals.back().figures);
  const bool holds_out = !run.evals.empty() && run.evals.back().validation.has_value();
  const ChartAxis y{.label = holds_out ? name : "test " + name, .most = 1};
  Chart chart = switchable(run, holds_out ? "Quality" : "Quality on the test set", y, [&](const Across& across) {
    std::vector<ChartSeries> all{of_evaluations(run, across, "test " + name, colour, [](const EvalRecord& eval) {
      return std::optional(headline_of(eval.accuracy, eval.figures));
    })};
    if (!holds_out) return all;
    add_if_any(of_validation(run, across, "validation",
                             [](const EvalRecord& eval) {
                               return eval.validation ? std::optional(eval.validation->quality()) : std::nullopt;
                             }),
               all);
    ChartSeries training =
        of_evaluations(run, across, "training", kGreyLine, [](const EvalRecord& eval) { return eval.train_accuracy; });
    training.marked = false;
    add_if_any(std::move(training), all);
    return all;
  });
  if (holds_out) chart.note = "Training: mean over the batches since the evaluation before, each before its update.";
  return chart;
}

ChartSeries level(const std::string& name, double value, int colour) {
  return {.name = name, .points = {{.y = value}}, .marked = false, .is_level = true, .colour = colour};
}

Chart throughput_chart(const ReportedRun& run, int colour) {
  const Waterfall& waterfall = run.explained.waterfall;
  Chart chart{.title = "Throughput of the whole job",
              .x = {.label = run.time_label("seconds of training"), .from_zero = true},
              .y = {.label = run.time_label("samples/s"), .from_zero = true},
              .series = {}};
  const int workers = std::max(1, run.explained.pace.workers);
  const std::size_t pieces = pieces_of(run.recorded.steps.count(), workers, kMostThroughputPieces);
  ChartSeries measured{.name = "measured", .points = {}, .colour = colour};
  for (const ThroughputPiece& piece : throughput_over_time(run.recorded.steps, pieces)) {
    measured.points.push_back({piece.seconds, piece.samples_per_second});
  }
  chart.series.push_back(std::move(measured));
  chart.series.push_back(level("ideal", waterfall.ideal_rate(), kGreyLine));
  constexpr int kPredictedColour = 2, kModelColour = 3;
  if (run.explained.predicted_rate) {
    chart.series.push_back(level("closed form", *run.explained.predicted_rate, kModelColour));
  }
  if (!run.explained.causes.empty() && run.explained.causes.front().predicted_rate) {
    const Cause& cause = run.explained.causes.front();
    chart.series.push_back(level("predicted without " + cause.phrase, *cause.predicted_rate, kPredictedColour));
    chart.note = fmt::format("Predicted by: {}.", cause.by);
  }
  chart.note = fmt::format("Ideal: {}{}{}. {}", ideal_text(waterfall, run.explained.pace),
                           run.explained.pace.pipeline ? "" : ", and nobody waits",
                           run.explained.predicted_rate ? "; the closed form begins with that" : "", chart.note);
  return chart;
}

}  // namespace

std::vector<ThroughputPiece> throughput_over_time(const RecordedSteps& recorded, std::size_t count) {
  const std::vector<StepOfWorker> steps = recorded.by_end();
  const double last = steps.empty() ? 0 : seconds(steps.back().step->end.time_since_epoch());
  if (last <= 0 || count == 0) return {};
  const double length = last / static_cast<double>(count);
  std::vector<double> samples(count, 0.0);
  for (const auto& [worker, step] : steps) {
    const double end = seconds(step->end.time_since_epoch());
    const double from = std::clamp(end - seconds(step->total), 0.0, last), to = std::clamp(end, from, last);
    const auto place = [&](double time) { return std::min(static_cast<std::size_t>(time / length), count - 1); };
    const double used = static_cast<double>(step->samples) * (1 - std::clamp(step->sync.dropped, 0.0, 1.0));
    for (std::size_t i = place(from); i <= place(to); ++i) {
      const double begin = static_cast<double>(i) * length;
      const double part = to > from ? (std::min(to, begin + length) - std::max(from, begin)) / (to - from) : 1;
      samples[i] += used * std::max(0.0, part);
    }
  }
  std::vector<ThroughputPiece> pieces;
  for (std::size_t i = 0; i < count; ++i) {
    pieces.push_back({.seconds = (static_cast<double>(i) + 0.5) * length, .samples_per_second = samples[i] / length});
  }
  return pieces;
}

std::vector<AnyChart> curve_charts(const ReportedRun& run) {
  const std::string mode = mode_of(run.recorded.config);
  const int colour = mode_colours({mode}).at(mode);
  return {loss_chart(run, colour), quality_chart(run, colour), throughput_chart(run, colour)};
}

}  // namespace syncopate::experiments
