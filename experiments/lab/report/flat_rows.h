// Rows of named values, each value a text, a number, true, false or null, as JSON and as CSV: once for both. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace syncopate::experiments {

using FlatRow = nlohmann::ordered_json;  // an object; all rows have the same names in the same order

// Returns the names and then each row as comma-separated values; null is empty, and texts are as csv_text() has them.
std::string rows_csv(const std::vector<FlatRow>& rows);

}  // namespace syncopate::experiments
