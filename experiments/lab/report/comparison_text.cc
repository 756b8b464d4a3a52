#include "experiments/lab/report/comparison_text.h"

#include "experiments/lab/report/comparison_figures.h"
#include "experiments/lab/report/comparison_tables.h"
#include "experiments/lab/report/text_table.h"

namespace syncopate::experiments {

std::string comparison_text(const ComparisonReport& report) {
  const ComparisonFigures figures = figures_of(report);
  std::string text;
  for (const ComparisonTable& table : comparison_tables(report, figures)) {
    text += table.title + "\n" + text_table(table.rows) + "\n";
  }
  for (const std::string& line : caveats(report, figures)) text += line + "\n";
  return text;
}

}  // namespace syncopate::experiments
