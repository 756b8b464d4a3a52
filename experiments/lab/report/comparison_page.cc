#include <fmt/format.h>

#include <algorithm>

#include "experiments/lab/report/comparison_charts.h"
#include "experiments/lab/report/comparison_figures.h"
#include "experiments/lab/report/comparison_files.h"
#include "experiments/lab/report/comparison_tables.h"
#include "experiments/lab/report/html_text.h"

namespace syncopate::experiments {
namespace {

constexpr const char* kStyle = R"(
body { font-family: sans-serif; margin: 1.5em; color: #222; }
h1 { font-size: 1.4em; } h2 { font-size: 1.05em; font-weight: normal; max-width: 70em; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { padding: 0.25em 0.8em; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30em), 1fr)); gap: 1.5em; }
.charts svg { width: 100%; height: auto; }
pre { overflow-x: auto; background: #f6f6f6; padding: 0.6em; }
li { margin: 0.2em 0; max-width: 70em; }
@media (max-width: 600px) { body { margin: 0.6em; } th, td { padding: 0.25em 0.5em; font-size: 0.9em; } }
)";

std::string table_html(const ComparisonTable& table) {
  std::string html = fmt::format("<h2>{}</h2>\n<div class=\"wide\"><table>\n", html_text(table.title));
  for (const std::vector<std::string>& row : table.rows) {
    const char* const tag = &row == &table.rows.front() ? "th" : "td";
    html += "<tr>";
    for (const std::string& text : row) html += fmt::format("<{0}>{1}</{0}>", tag, html_text(text));
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

// Returns where and when the comparison ran.
std::string place_of(const ComparisonReport& report) {
  const Environment& machine = report.machine;
  std::vector<std::string> parts;
  if (!machine.host.empty()) {
    std::string host = "on " + machine.host;
    if (machine.cores > 0)
      host += fmt::format(" ({}{} core{})", machine.cpu_model.empty() ? "" : machine.cpu_model + ", ", machine.cores,
                          machine.cores == 1 ? "" : "s");
    parts.push_back(host);
  }
  if (!report.started.empty()) parts.push_back("started " + report.started);
  if (!report.version.empty()) parts.push_back(report.version);
  return joined(parts, "; ");
}

std::string preformatted(const char* title, const std::string& text) {
  if (text.empty()) return {};
  std::string lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines += html_text(std::string_view(text).substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  return fmt::format("<h2>{}</h2>\n<pre>{}</pre>\n", title, lines);
}

}  // namespace

std::string comparison_html(const ComparisonReport& report) {
  const ComparisonFigures figures = figures_of(report);
  std::string tables, charts, lines;
  for (const ComparisonTable& table : comparison_tables(report, figures)) tables += table_html(table);
  for (const std::string& chart : comparison_charts(report, figures)) charts += "<div>" + chart + "</div>\n";
  for (const std::string& line : caveats(report, figures)) lines += fmt::format("<li>{}</li>\n", html_text(line));
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0}</title>\n<style>{1}</style></head>\n"
      "<body><h1>{0}</h1>\n<p>{2}</p>\n{3}<ul>\n{4}</ul>\n<div class=\"charts\">\n{5}</div>\n{6}{7}</body></html>\n",
      html_text(report.job), kStyle, html_text(place_of(report)), tables, lines, charts,
      preformatted("Command", report.command), preformatted("What the rows share", report.config_toml));
}

}  // namespace syncopate::experiments
