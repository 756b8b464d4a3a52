// The tables of a comparison, as words: for a terminal and for a page alike. Pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/report/comparison_figures.h"
#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

struct ComparisonTable {
  std::string title;                           // what is in it, with units, and which mean is meant
  std::vector<std::vector<std::string>> rows;  // the first is the head; all are as long
};

// Speed; what a step is made of; what was learnt; where a target was asked for, when it was reached; where rates were
// tried, what came of them. A table that would say nothing is left out.
std::vector<ComparisonTable> comparison_tables(const ComparisonReport& report, const ComparisonFigures& figures);

}  // namespace syncopate::experiments
