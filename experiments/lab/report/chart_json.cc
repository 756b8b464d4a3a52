#include "experiments/lab/report/chart_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/text/printable_text.h"

namespace syncopate::experiments {
namespace {

using ChartJson = nlohmann::ordered_json;

std::string shown(const std::string& text) {
  constexpr std::size_t kLongestText = 1000;
  return printable(text, kLongestText);
}

// With as many digits as can be seen, so that a page is not longer than it needs to be.
double seen(double value) {
  double rounded = value;
  const std::string text = fmt::format("{:.7g}", value);
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return rounded;
}

ChartJson json_of(const ChartAxis& axis) {
  ChartJson json = {{"label", shown(axis.label)}};
  if (axis.logarithmic) json["logarithmic"] = true;
  if (axis.from_zero) json["from_zero"] = true;
  if (axis.most) json["most"] = *axis.most;
  return json;
}

void add_ends(ChartJson& json, const std::optional<double>& low, const std::optional<double>& high) {
  if (!low || !high || !std::isfinite(*low) || !std::isfinite(*high)) return;
  json["low"] = seen(*low);
  json["high"] = seen(*high);
}

ChartJson json_of(const ChartSeries& series) {
  ChartJson points = ChartJson::array();
  for (const ChartPoint& point : series.points) {
    const double x = series.is_level ? 0 : point.x;
    if (!std::isfinite(x) || !std::isfinite(point.y)) continue;
    ChartJson one = {{"x", seen(x)}, {"y", seen(point.y)}};
    if (!point.label.empty()) one["label"] = shown(point.label);
    add_ends(one, point.low, point.high);
    points.push_back(std::move(one));
    if (series.is_level) break;
  }
  ChartJson json = {{"name", shown(series.name)}, {"joined", series.joined}, {"marked", series.marked},
                    {"level", series.is_level},   {"colour", series.colour}, {"marker", series.marker}};
  if (series.dashed) json["dashed"] = true;
  json["points"] = std::move(points);
  return json;
}

ChartJson view_json(const std::string& name, const std::string& part, const ChartAxis& x,
                    const std::vector<ChartSeries>& all) {
  ChartJson series = ChartJson::array();
  for (const ChartSeries& one : all) {
    ChartJson json = json_of(one);
    if (!json["points"].empty()) series.push_back(std::move(json));
  }
  ChartJson json = {{"name", shown(name)}};
  if (!part.empty()) json["part"] = shown(part);
  json["x"] = json_of(x);
  json["series"] = std::move(series);
  return json;
}

struct ToJson {
  ChartJson operator()(const Chart& chart) const {
    ChartJson views = ChartJson::array();
    const std::size_t place = std::min(chart.place, chart.others.size());
    for (std::size_t i = 0; i <= chart.others.size(); ++i) {
      if (i == place) views.push_back(view_json(chart.view, chart.part, chart.x, chart.series));
      if (i == chart.others.size()) break;
      const ChartView& view = chart.others[i];
      views.push_back(view_json(view.name, view.part, view.x, view.series));
    }
    ChartJson json = {{"kind", "lines"}, {"title", shown(chart.title)}, {"y", json_of(chart.y)}};
    if (place > 0) json["begin"] = place;
    json["views"] = std::move(views);
    return json;
  }
  ChartJson operator()(const IntervalChart& chart) const {
    ChartJson rows = ChartJson::array();
    for (const IntervalRow& row : chart.rows) {
      if (!std::isfinite(row.value)) continue;
      ChartJson one = {
          {"name", shown(row.name)}, {"value", seen(row.value)}, {"colour", row.colour}, {"marker", row.marker}};
      add_ends(one, row.low, row.high);
      rows.push_back(std::move(one));
    }
    return {{"kind", "intervals"},
            {"title", shown(chart.title)},
            {"axis", {{"label", shown(chart.axis)}}},
            {"reference", chart.reference},
            {"rows", std::move(rows)}};
  }
  ChartJson operator()(const BarChart& chart) const {
    ChartJson json = {{"kind", "bars"}, {"title", shown(chart.title)}, {"axis", json_of(chart.axis)}};
    if (!chart.others.empty()) json["begin"] = chart.others.size();
    json["views"] = ChartJson::array();
    for (const BarPart& part : chart.others) json["views"].push_back(bars_json(part));
    json["views"].push_back(bars_json({chart.part, chart.rows, chart.series}));
    return json;
  }

 private:
  static ChartJson bars_json(const BarPart& part) {
    ChartJson rows = ChartJson::array(), all = ChartJson::array();
    for (const std::string& row : part.rows) rows.push_back(shown(row));
    for (const BarSeries& series : part.series) {
      ChartJson bars = ChartJson::array();
      for (const Bar& bar : series.bars) {
        if (!std::isfinite(bar.from) || !std::isfinite(bar.to)) continue;
        ChartJson one = {{"row", shown(bar.row)}, {"from", seen(bar.from)}, {"to", seen(bar.to)}};
        if (!bar.label.empty()) one["label"] = shown(bar.label);
        if (!bar.tip.empty()) one["tip"] = shown(bar.tip);
        bars.push_back(std::move(one));
      }
      if (bars.empty()) continue;
      all.push_back({{"name", shown(series.name)}, {"colour", series.colour}, {"bars", std::move(bars)}});
    }
    ChartJson json = {{"name", ""}};
    if (!part.part.empty()) json["part"] = shown(part.part);
    json["rows"] = std::move(rows);
    json["series"] = std::move(all);
    return json;
  }
};

template <typename Named>
std::string names_of(const std::vector<Named>& all) {
  constexpr std::size_t kMostNames = 12;
  std::string text;
  for (std::size_t i = 0; i < all.size() && i < kMostNames; ++i) text += (i == 0 ? "" : ", ") + all[i].name;
  return text + (all.size() > kMostNames ? fmt::format(" and {} more", all.size() - kMostNames) : "");
}

struct ToSentence {
  std::string operator()(const Chart& chart) const {
    return fmt::format("Chart of lines and points: {}. {} over {}. {}", chart.title, chart.y.label, chart.x.label,
                       names_of(chart.series));
  }
  std::string operator()(const IntervalChart& chart) const {
    return fmt::format("Values with intervals: {}. {}. {}", chart.title, chart.axis, names_of(chart.rows));
  }
  std::string operator()(const BarChart& chart) const {
    return fmt::format("Bars: {}. {}. {}", chart.title, chart.axis.label, names_of(chart.series));
  }
};

}  // namespace

std::string chart_json(const AnyChart& chart) {
  ChartJson json = std::visit(ToJson(), chart);
  const std::string note = std::visit([](const auto& one) { return one.note; }, chart);
  if (!note.empty()) json["note"] = shown(note);
  const std::string text = json.dump(-1, ' ', false, ChartJson::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      safe += "\\u003c";  // "</script>" would end the script
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string chart_sentence(const AnyChart& chart) { return std::visit(ToSentence(), chart) + "."; }

}  // namespace syncopate::experiments
