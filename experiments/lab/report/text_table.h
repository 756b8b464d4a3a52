// Rows of words, aligned for people. Pure.
#pragma once

#include <string>
#include <vector>

namespace syncopate::experiments {

// All rows have as many cells as the first. The first column is flush left, the others right; two blanks between.
// UTF-8, each character one column wide.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace syncopate::experiments
