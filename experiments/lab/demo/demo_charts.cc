#include "experiments/lab/demo/demo_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "common/text/number.h"
#include "experiments/lab/report/mode_colours.h"
#include "experiments/lab/report/plot_scale.h"

namespace syncopate::experiments {
namespace {

using Document = DemoFigures::Document;

std::string text_in(const Document& row, const char* key) {
  return row.is_object() && row.contains(key) && row[key].is_string() ? row[key].get<std::string>() : std::string();
}

// Returns the rows of a comparison.
Result<Document> rows_of(const DemoPlot& plot, const DemoFigures& figures) {
  const Document* const run = figures.document(plot.run);
  if (run != nullptr && run->is_object() && run->contains("rows") && (*run)["rows"].is_array()) return (*run)["rows"];
  return Status::invalid_argument(fmt::format("{}: must be a comparison, which has rows to draw", plot.run));
}

// Returns the number that an option's value in a row begins with, as 25 of 25gbit+50us; none if it does not apply or
// begins with none.
std::optional<double> varied_value(const Document& row, const std::string& option) {
  if (!row.contains("values") || !row["values"].is_object()) return std::nullopt;
  const std::string text = text_in(row["values"], option.c_str());
  return parse_number<double>(std::string_view(text).substr(0, text.find_first_not_of("0123456789.")));
}

std::string line_name(const Document& row, const std::string& option) {
  std::string name = text_in(row, "mode");
  if (!row.contains("values") || !row["values"].is_object()) return name;
  for (const auto& [other, value] : row["values"].items()) {
    if (other != option && value.is_string()) name += fmt::format(" {}={}", other, value.get<std::string>());
  }
  return name;
}

// The lines of a chart, with the mode of each.
struct ModeLines {
  std::vector<ChartSeries> series;
  std::vector<std::string> modes;

  // Returns the line of that name, which it adds where there is none.
  ChartSeries& named(const std::string& name, const std::string& mode, bool is_level) {
    const auto found = std::ranges::find(series, name, &ChartSeries::name);
    if (found != series.end()) return *found;
    series.push_back({.name = name, .points = {}, .is_level = is_level});
    modes.push_back(mode);
    return series.back();
  }

  // Returns them with the colours of their modes, and markers that no other of the mode has.
  std::vector<ChartSeries> coloured() && {
    const std::vector<int> colours = row_colours(modes);
    for (std::size_t i = 0; i < series.size(); ++i) {
      const auto before = std::span(modes).first(i);
      series[i].colour = colours[i];
      series[i].marker = colours[i] + static_cast<int>(std::ranges::count(before, modes[i]));
    }
    return std::move(series);
  }
};

Result<AnyChart> lines_of(const DemoPlot& plot, const DemoFigures& figures) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Document rows, rows_of(plot, figures));
  Chart chart{.title = plot.title,
              .x = {.label = plot.x_label, .logarithmic = plot.x_logarithmic},
              .y = {.label = plot.y_label, .logarithmic = plot.y_logarithmic, .from_zero = !plot.y_logarithmic},
              .series = {}};
  ModeLines lines;
  for (const Document& row : rows) {
    const Result<FigureValue> y = evaluate(fmt::format("[{}/{}/{}]", plot.run, text_in(row, "label"), plot.y), figures);
    if (!y.ok()) return y.status();
    if (!y->number) continue;
    const std::optional<double> x = varied_value(row, plot.x);
    lines.named(line_name(row, plot.x), text_in(row, "mode"), !x)
        .points.push_back({.x = x.value_or(0), .y = plot.factor * *y->number});
  }
  chart.series = std::move(lines).coloured();
  for (ChartSeries& series : chart.series) std::ranges::sort(series.points, {}, &ChartPoint::x);
  return AnyChart(std::move(chart));
}

Result<AnyChart> curves_of(const Demo& demo, const DemoPlot& plot, const DemoFigures& figures) {
  SYNCOPATE_ASSIGN_OR_RETURN(const Document rows, rows_of(plot, figures));
  const Document* const run = figures.document(plot.run);
  Chart chart{.title = plot.title,
              .x = {.label = demo.is_real ? "seconds of training" : "simulated seconds of training", .from_zero = true},
              .y = {.label = "test " + text_in(*run, "quality_is"), .most = 1},
              .series = {}};
  ModeLines lines;
  for (const Document& row : rows) {
    const std::string label = text_in(row, "label");
    if (!label.starts_with(plot.rows)) continue;
    const Document* evaluations = nullptr;
    if (row.contains("rounds") && row["rounds"].is_array()) {
      for (const Document& round : row["rounds"]) {
        if (evaluations == nullptr && round.is_object() && round.contains("evaluations"))
          evaluations = &round["evaluations"];
      }
    }
    if (evaluations == nullptr || !evaluations->is_array()) continue;
    ChartSeries& series = lines.named(label, text_in(row, "mode"), false);
    for (const Document& one : *evaluations) {
      if (!one.is_object() || !one.contains("training_seconds") || !one.contains("headline")) continue;
      if (!one["training_seconds"].is_number() || !one["headline"].is_number()) continue;
      series.points.push_back({.x = one["training_seconds"].get<double>(), .y = one["headline"].get<double>()});
    }
  }
  chart.series = std::move(lines).coloured();
  return AnyChart(std::move(chart));
}

// Returns the mode that a bar's name begins with: "ps:sync" of "ps:sync, one slow"; all of it without a comma.
std::string mode_of_bar(const std::string& name) { return name.substr(0, name.find(',')); }

Result<AnyChart> bars_of(const DemoPlot& plot, const DemoFigures& figures) {
  BarChart chart{.title = plot.title, .axis = {.label = plot.y_label, .from_zero = true}, .rows = {}, .series = {}};
  std::vector<std::string> modes;
  for (const auto& [name, formula] : plot.bars) modes.push_back(mode_of_bar(name));
  const std::map<std::string, int> colours = mode_colours(modes);
  for (const auto& [name, formula] : plot.bars) {
    SYNCOPATE_ASSIGN_OR_RETURN(const FigureValue value, evaluate(formula, figures));
    if (!value.number) continue;
    chart.rows.push_back(name);
    const std::string mode = mode_of_bar(name);
    auto series = std::ranges::find(chart.series, mode, &BarSeries::name);
    if (series == chart.series.end()) {
      chart.series.push_back({.name = mode, .bars = {}, .colour = colours.at(mode)});
      series = std::prev(chart.series.end());
    }
    series->bars.push_back({.row = name, .from = 0, .to = *value.number, .label = tick_text(*value.number)});
  }
  return AnyChart(std::move(chart));
}

}  // namespace

Result<std::vector<AnyChart>> demo_charts(const Demo& demo, const DemoFigures& figures) {
  std::vector<AnyChart> charts;
  for (const DemoPlot& plot : demo.plots) {
    Result<AnyChart> chart = plot.kind == DemoPlot::Kind::kLines    ? lines_of(plot, figures)
                             : plot.kind == DemoPlot::Kind::kCurves ? curves_of(demo, plot, figures)
                                                                    : bars_of(plot, figures);
    if (!chart.ok()) return chart.status();
    charts.push_back(std::move(*chart));
  }
  return charts;
}

}  // namespace syncopate::experiments
