// VariedRows: which rows of a comparison differ in nothing but the value of one varied option, or in nothing but their
// mode. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/report/comparison_report.h"

namespace syncopate::experiments {

// Rows of one mode that differ in one option alone, which has numbers as values.
struct RowsOverOption {
  std::string mode;                      // "ps:sync"
  std::string others;                    // the other varied options: "servers=2"; empty: none
  std::map<double, std::size_t> row_of;  // the report's row, by the option's value
};

// Returns them for an option, in the order of their first rows. Rows in which the option has no effect, or whose value
// is no number above zero, are in none.
std::vector<RowsOverOption> rows_over(const ComparisonReport& report, const std::string& option);

// Returns "ps:sync servers=2".
std::string name_of(const RowsOverOption& rows);

}  // namespace syncopate::experiments
