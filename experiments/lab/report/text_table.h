// Formats rows of words as an aligned table. Pure.
#pragma once

#include <string>
#include <vector>

namespace syncopate::experiments {

// All rows must have as many cells as the first. The first column is aligned left, the others right, with two blanks
// between columns. A table goes on below, after the first column again, at each column whose heading is in `cuts`, and
// where it does not fit into 80 characters; where names of the first column are long and it does not fit, it has these
// in lines of their own, above the row's other cells. The text is UTF-8; each character counts as one.
std::string text_table(const std::vector<std::vector<std::string>>& rows, const std::vector<std::string>& cuts = {});

}  // namespace syncopate::experiments
