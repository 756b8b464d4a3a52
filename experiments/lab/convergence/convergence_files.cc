#include "experiments/lab/convergence/convergence_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/os/whole_file.h"
#include "experiments/lab/convergence/convergence_text.h"
#include "experiments/lab/report/chart.h"
#include "experiments/lab/report/csv_text.h"
#include "experiments/lab/report/html_page.h"
#include "experiments/lab/report/html_text.h"

namespace syncopate::experiments {
namespace {

std::vector<std::string> series_of(const ConvergenceTable& table) {
  std::vector<std::string> names;
  for (const ConvergenceSetting& setting : table.settings) {
    if (std::ranges::find(names, setting.series) == names.end()) names.push_back(setting.series);
  }
  return names;
}

std::string table_html(const ReproducedConvergence& reproduced) {
  const ConvergenceTable& table = reproduced.table;
  std::vector<std::string> facts = convergence_facts(table);
  facts.push_back(convergence_count(reproduced));
  std::string html = fmt::format("<h2 id=\"{0}\">{0}</h2>\n", html_text(table.name)) + html_list(facts) +
                     html_charts({convergence_chart(reproduced)}) +
                     html_table(convergence_rows(reproduced), table.name);
  std::vector<std::vector<std::string>> commands = {{"setting", "alone"}};
  for (std::size_t i = 0; i < table.settings.size(); ++i) {
    commands.push_back(
        {table.settings[i].name, convergence_command(table.settings[i], reproduced.measured[i].accuracies.size())});
  }
  return html + fmt::format("<details><summary>Commands</summary>\n{}</details>\n",
                            html_table(commands, table.name + ", commands"));
}

}  // namespace

Chart convergence_chart(const ReproducedConvergence& reproduced) {
  constexpr double kPercent = 100;
  const ConvergenceTable& table = reproduced.table;
  Chart chart{.title = table.name + ": accuracy at the end",
              .x = {.label = table.x_label},
              .y = {.label = "accuracy on the test set, %", .from_zero = true, .most = kPercent},
              .series = {}};
  int number = 0;
  for (const std::string& name : series_of(table)) {
    ChartSeries ours{.name = name + ", ours", .points = {}, .colour = number, .marker = 0};
    ChartSeries published{.name = name + ", published", .points = {}, .joined = false, .colour = number, .marker = 1};
    for (std::size_t i = 0; i < table.settings.size(); ++i) {
      const ConvergenceSetting& setting = table.settings[i];
      if (setting.series != name) continue;
      const ConvergenceVerdict verdict = verdict_of(reproduced, i);
      ours.points.push_back({.x = setting.x,
                             .y = kPercent * verdict.mean,
                             .low = kPercent * verdict.least,
                             .high = kPercent * verdict.most});
      for (const PublishedConvergence& figure : setting.published) {
        if (figure.accuracy) published.points.push_back({.x = setting.x, .y = kPercent * *figure.accuracy});
      }
    }
    chart.series.push_back(std::move(ours));
    chart.series.push_back(std::move(published));
    ++number;
  }
  return chart;
}

std::string convergence_html(const std::vector<ReproducedConvergence>& tables, const std::vector<std::string>& notes) {
  std::string body =
      "<p>Published accuracies beside small runs of ours on a simulated cluster, in kind: a setting <i>learns</i> that "
      "comes nine tenths of the way from chance to sync with the same workers, <i>collapses</i> below a third of it, "
      "and <i>falls short</i> between. Data and models are not the same, and settings of ours were searched for. Bars "
      "have the least and the most of all seeds.</p>\n" +
      html_list(notes);
  for (const ReproducedConvergence& reproduced : tables) body += table_html(reproduced);
  return html_page("Published convergence beside ours, in kind", body);
}

std::string convergence_csv(const std::vector<ReproducedConvergence>& tables) {
  std::string csv = "table,setting,published,published_kinds,seed,accuracy,kind,staleness,verdict,command,source\n";
  for (const ReproducedConvergence& reproduced : tables) {
    const ConvergenceTable& table = reproduced.table;
    for (std::size_t i = 0; i < table.settings.size(); ++i) {
      const ConvergenceSetting& setting = table.settings[i];
      const MeasuredConvergence& measured = reproduced.measured[i];
      const ConvergenceVerdict verdict = verdict_of(reproduced, i);
      std::vector<std::string> figures;
      std::vector<Convergence> kinds;
      for (const PublishedConvergence& published : setting.published) {
        figures.push_back(published.text);
        kinds.push_back(published.kind);
      }
      for (std::size_t seed = 0; seed < measured.accuracies.size(); ++seed) {
        csv += fmt::format("{},{},{},{},{},{:.6g},{},{:.6g},{},{},{}\n", csv_text(table.name), csv_text(setting.name),
                           csv_text(fmt::format("{}", fmt::join(figures, ", "))), csv_text(kinds_text(kinds)), seed + 1,
                           measured.accuracies[seed], csv_text(name_of(verdict.kinds[seed])), measured.staleness,
                           csv_text(text_of(verdict)),
                           csv_text(convergence_command(setting, measured.accuracies.size())), csv_text(table.source));
      }
    }
  }
  return csv;
}

Status write_convergence(const std::vector<ReproducedConvergence>& tables, const std::vector<std::string>& notes,
                         const std::string& folder) {
  SYNCOPATE_RETURN_IF_ERROR(make_folder(folder));
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(folder + "/convergence.csv", convergence_csv(tables)));
  return write_whole_file(folder + "/convergence.html", convergence_html(tables, notes));
}

}  // namespace syncopate::experiments
