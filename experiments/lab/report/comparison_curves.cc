#include "experiments/lab/report/comparison_curves.h"

#include <algorithm>
#include <functional>
#include <optional>

namespace syncopate::experiments {
namespace {

// A point of a curve: where it lies over each of what a curve can be drawn over.
struct CurveOver {
  double seconds = 0, steps = 0, samples = 0;
  double value = 0;
};
using RowCurve = std::function<std::vector<CurveOver>(const ComparedRow& row, std::size_t round)>;

struct DrawnOver {
  const char* name;
  std::string label;
  double CurveOver::*place;
};

std::vector<DrawnOver> all_over(const ComparisonReport& report) {
  return {{"time", time_label(report, "seconds of training"), &CurveOver::seconds},
          {"steps", "steps of all workers", &CurveOver::steps},
          {"samples", "samples of all workers", &CurveOver::samples}};
}

RowCurve of_evaluations(std::function<std::optional<double>(const EvalRecord&)> figure) {
  return [figure = std::move(figure)](const ComparedRow& row, std::size_t round) {
    std::vector<CurveOver> curve;
    for (const EvalRecord& eval : row.evals[round]) {
      const auto samples = static_cast<double>(eval.samples_seen);
      const std::optional<double> value = figure(eval);
      if (value) curve.push_back({eval.training_seconds, samples / std::max(1, row.batch_size), samples, *value});
    }
    return curve;
  };
}

std::vector<CurveOver> training_of(const ComparedRow& row, std::size_t) {
  std::vector<CurveOver> curve;
  for (const TrainingPiece& piece : row.training) {
    curve.push_back({piece.seconds, piece.steps, piece.samples, piece.loss});
  }
  return curve;
}

Chart curves(const ComparisonReport& report, const ComparisonFigures& figures, const Looks& looks,
             const std::string& title, const ChartAxis& y, const RowCurve& curve_of, bool marked) {
  const bool in_parts = !report.varied.empty() && report.rows.size() > kMostNamedLines;
  Chart chart{.title = title, .x = {}, .y = y, .series = {}};
  for (const DrawnOver& over : all_over(report)) {
    std::vector<PartLine> lines;
    for (std::size_t i = 0; i < report.rows.size(); ++i) {
      const ComparedRow& row = report.rows[i];
      const std::optional<std::size_t> round = middle_round(row);
      if (!round) continue;
      const Look look = in_parts ? looks.of_mode(row.mode) : looks.of_row(i);
      PartLine line{.values = {}, .series = {.name = in_parts ? row.mode : row.label, .points = {}, .marked = marked}};
      if (in_parts) line.values = row.values;
      line.series.colour = look.colour;
      line.series.marker = look.marker;
      for (const CurveOver& point : curve_of(row, *round))
        line.series.points.push_back({point.*over.place, point.value});
      if (!line.series.points.empty()) lines.push_back(std::move(line));
    }
    Chart drawn{.title = {}, .x = {.label = over.label, .from_zero = true}, .y = y, .series = {}};
    set_lines(drawn, lines);
    for (ChartView& part : drawn.others) {
      part.name = over.name;
      chart.others.push_back(std::move(part));
    }
    if (chart.view.empty()) {
      chart.view = over.name;
      chart.part = drawn.part;
      chart.x = drawn.x;
      chart.series = std::move(drawn.series);
      chart.place = drawn.place;
    } else {
      chart.others.push_back({over.name, drawn.x, std::move(drawn.series), drawn.part});
    }
  }
  if (figures.most_rounds > 1) chart.note = "Each row's round of median speed.";
  return chart;
}

}  // namespace

std::vector<AnyChart> comparison_curves(const ComparisonReport& report, const ComparisonFigures& figures,
                                        const Looks& looks) {
  const bool is_regression = figures.quality == "R2";
  const ChartAxis loss{.label = is_regression ? "loss, mean squared error" : "loss, nats", .from_zero = true};
  std::vector<AnyChart> charts;
  const auto add = [&](const std::string& title, const ChartAxis& y, const RowCurve& curve, bool marked = true) {
    charts.emplace_back(curves(report, figures, looks, title, y, curve, marked));
  };
  add("Training loss, means of batches", loss, training_of, false);
  add("Loss on the test set", loss, of_evaluations([](const EvalRecord& eval) { return eval.loss; }));
  add("Quality on the test set", quality_axis(figures),
      of_evaluations([](const EvalRecord& eval) { return headline_of(eval.accuracy, eval.figures); }));
  add("Loss on what is held out", loss, of_evaluations([](const EvalRecord& eval) {
        return eval.validation ? std::optional(eval.validation->loss) : std::nullopt;
      }));
  add(is_regression ? "R2 on what is held out" : "Accuracy on what is held out",
      {.label = is_regression ? "validation R2" : "validation accuracy", .most = 1},
      of_evaluations([](const EvalRecord& eval) {
        return eval.validation ? std::optional(eval.validation->quality()) : std::nullopt;
      }));
  return charts;
}

}  // namespace syncopate::experiments
