#include <fmt/format.h>

#include <algorithm>

#include "experiments/lab/report/comparison_charts.h"
#include "experiments/lab/report/comparison_figures.h"
#include "experiments/lab/report/comparison_files.h"
#include "experiments/lab/report/comparison_tables.h"
#include "experiments/lab/report/comparison_words.h"
#include "experiments/lab/report/environment_rows.h"
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

// What runs each row's first round again by itself; empty if none has a folder.
std::string commands_of(const ComparisonReport& report) {
  std::vector<std::vector<std::string>> rows = {{"mode", "its first round again"}};
  for (const ComparedRow& row : report.rows) {
    const auto folder = std::ranges::find_if(row.folders, [](const std::string& one) { return !one.empty(); });
    if (folder != row.folders.end()) rows.push_back({row.label, command_again(*folder)});
  }
  return rows.size() > 1 ? html_folded("Each row alone", html_table(rows, "Commands")) : "";
}

std::string machine_part(const Environment& machine) {
  const auto rows = environment_rows(machine);
  return rows.empty() ? "" : html_folded("Machine", html_facts(rows, "Machine"));
}

}  // namespace

std::string comparison_html(const ComparisonReport& report) {
  const ComparisonFigures figures = figures_of(report);
  std::string tables;
  for (const ComparisonTable& table : comparison_tables(report, figures)) {
    tables += fmt::format("<h2>{}</h2>\n{}", html_text(table.title), html_table(table.rows, table.title));
    if (!table.sentences.empty()) tables += html_list(table.sentences);
  }
  std::string body = fmt::format("<p>{}</p>\n", html_text(place_of(report)));
  body += html_charts(comparison_charts(report, figures)) + tables + html_list(caveats(report, figures));
  body += html_lines("Command", report.command) + commands_of(report) + machine_part(report.machine);
  return html_page(report.job, body + html_lines("What the rows share", report.config_toml));
}

}  // namespace syncopate::experiments
