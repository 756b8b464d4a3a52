#include <fmt/format.h>

#include <algorithm>

#include "experiments/lab/report/comparison_charts.h"
#include "experiments/lab/report/comparison_figures.h"
#include "experiments/lab/report/comparison_files.h"
#include "experiments/lab/report/comparison_tables.h"
#include "experiments/lab/report/html_page.h"
#include "experiments/lab/report/html_text.h"

namespace syncopate::experiments {
namespace {

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

}  // namespace

std::string comparison_html(const ComparisonReport& report) {
  const ComparisonFigures figures = figures_of(report);
  std::string tables;
  for (const ComparisonTable& table : comparison_tables(report, figures)) {
    tables += fmt::format("<h2>{}</h2>\n{}", html_text(table.title), html_table(table.rows, table.title));
    if (!table.sentences.empty()) tables += html_list(table.sentences);
  }
  return html_page(report.job, fmt::format("<p>{}</p>\n{}{}{}{}{}", html_text(place_of(report)),
                                           html_charts(comparison_charts(report, figures)), tables,
                                           html_list(caveats(report, figures)), html_lines("Command", report.command),
                                           html_lines("What the rows share", report.config_toml)));
}

}  // namespace syncopate::experiments
