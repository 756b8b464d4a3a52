// The tables of a comparison, as words: for a terminal and for a page alike. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/report/comparison_figures.h"
#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

struct ComparisonTable {
  std::string title;                           // what it contains, with units, and which mean is used
  std::vector<std::vector<std::string>> rows;  // the first is the heading; all have the same length
  std::vector<std::string> sentences = {};     // what else it says, below it
  std::vector<std::string> cuts = {};          // headings of columns at which it goes on below in a terminal
};

// Returns the tables: speed; scaling and crossovers, where something is varied that has them; figures of a step, and
// where its time went; what was learnt; when the target was reached, if there was one; costs, beside prices; and the
// results of the rates that were tried, if any. A table that would be empty is left out.
std::vector<ComparisonTable> comparison_tables(const ComparisonReport& report, const ComparisonFigures& figures);

// Returns a comparison as text for a terminal: its tables, and below them what a reader must know to trust them, one
// sentence a line; the last one answers which row is fastest.
std::string comparison_text(const ComparisonReport& report);

}  // namespace syncopate::experiments
