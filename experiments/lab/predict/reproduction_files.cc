#include "experiments/lab/predict/reproduction_files.h"

#include <fmt/format.h>

#include "common/os/whole_file.h"
#include "experiments/lab/predict/reproduction_charts.h"
#include "experiments/lab/predict/reproduction_text.h"
#include "experiments/lab/report/csv_text.h"
#include "experiments/lab/report/html_page.h"
#include "experiments/lab/report/html_text.h"
#include "experiments/lab/report/results_folder.h"

namespace syncopate::experiments {
namespace {

using prediction::ReproducedCell;
using prediction::Reproduction;

std::string table_html(const Reproduction& table) {
  std::string html = fmt::format("<h2 id=\"{0}\"><b>{0}</b>: {1}</h2>\n", html_text(table.name), html_text(table.what));
  std::vector<std::string> facts = {"Source: " + table.source + ".", "Closed form: " + table.model + "."};
  for (const std::string& sentence : table.calibrated) facts.push_back("Calibrated: " + sentence);
  for (const std::string& sentence : table.left_out) facts.push_back("Left out: " + sentence);
  facts.push_back(reproduction_errors(table));
  html += html_list(facts) + html_charts(reproduction_charts(table));
  return html + fmt::format("<details><summary>{} cells</summary>\n{}</details>\n", table.cells.size(),
                            html_table(reproduction_rows(table), table.name));
}

}  // namespace

std::string reproduction_html(const std::vector<Reproduction>& tables) {
  std::string body =
      "<p>Nothing here was simulated or measured by this program: the measurements are those of others, and the closed "
      "forms are calibrated on the cells that are marked. Errors are of the predicted cells alone.</p>\n" +
      html_table(summary_rows(tables), "All tables");
  for (const Reproduction& table : tables) body += table_html(table);
  return html_page("Published measurements beside closed forms", body);
}

std::string reproduction_csv(const std::vector<Reproduction>& tables) {
  std::string csv = "table,setup,workers,unit,measured,predicted,low,high,error,cell,source\n";
  for (const Reproduction& table : tables) {
    for (const ReproducedCell& cell : table.cells) {
      const std::string interval = cell.has_interval() ? fmt::format("{:.6g},{:.6g}", cell.low, cell.high) : ",";
      csv += fmt::format("{},{},{},{},{:.6g},{:.6g},{},{:.6g},{},{}\n", csv_text(table.name), csv_text(cell.setup),
                         cell.workers, csv_text(table.unit), cell.measured, cell.predicted, interval, cell.error(),
                         csv_text(name_of(cell.use)), csv_text(table.source));
    }
  }
  return csv;
}

Status write_reproduction(const std::vector<Reproduction>& tables, const std::string& folder) {
  SYNCOPATE_ASSIGN_OR_RETURN(const ResultsFolder taken,
                             ResultsFolder::take(folder, [&] { return check_holds_nothing(folder); }));
  SYNCOPATE_RETURN_IF_ERROR(write_whole_file(folder + "/reproduction.csv", reproduction_csv(tables)));
  return write_whole_file(folder + "/reproduction.html", reproduction_html(tables));
}

}  // namespace syncopate::experiments
