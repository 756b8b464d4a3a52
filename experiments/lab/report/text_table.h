// Formats rows of words as an aligned table. Pure.
#pragma once

#include <string>
#include <vector>

namespace syncopate::experiments {

// All rows must have as many cells as the first. The first column is aligned left, the others right, with two blanks
// between columns. The text is UTF-8; each character counts as one column.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace syncopate::experiments
