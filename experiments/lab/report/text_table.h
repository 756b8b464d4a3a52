// Formats rows of words as an aligned table. Pure.
#pragma once

#include <string>
#include <vector>

namespace syncopate::experiments {

// All rows must have as many cells as the first. The first column is aligned left, the others right, with two blanks
// between columns. A table that does not fit into 80 characters has long names of its first column in lines of their
// own, above the row's other cells; with short ones its last columns go on in a table below, after the first column
// again. The text is UTF-8; each character counts as one.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace syncopate::experiments
