// docs/units.md says of each option what it reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "common/text/quantity.h"
#include "experiments/config/options/option_table.h"
#include "tests/support/build_paths.h"
#include "tests/support/run_program.h"

namespace syncopate::experiments {
namespace {

struct UnitsRow {
  std::string quantity;
  std::vector<std::string> units, options;
  std::string alone;  // what a number without a unit is
};

// Returns what stands as code in a cell and begins with `prefix`, without that.
std::vector<std::string> marked_in(const std::string& cell, const std::string& prefix) {
  std::vector<std::string> found;
  std::istringstream parts(cell);
  bool is_marked = false;
  for (std::string part; std::getline(parts, part, '`'); is_marked = !is_marked) {
    if (is_marked && part.starts_with(prefix)) found.push_back(part.substr(prefix.size()));
  }
  return found;
}

std::vector<UnitsRow> rows_of_page() {
  std::vector<UnitsRow> rows;
  for (const std::string& line :
       testing_support::lines_of(testing_support::text_of(testing_support::source_directory() + "/docs/units.md"))) {
    if (!line.starts_with("| ")) continue;
    std::istringstream cells(line.substr(2));
    std::vector<std::string> row;
    for (std::string cell; std::getline(cells, cell, '|');) row.push_back(cell);
    if (row.size() < 4) continue;
    const auto trimmed = [](const std::string& text) {
      const std::size_t begin = text.find_first_not_of(' ');
      return begin == text.npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
    };
    rows.push_back({trimmed(row[0]), marked_in(row[1], ""), marked_in(row[2], "--"), trimmed(row[3])});
  }
  return rows;
}

TEST(UnitsPage, NamesWhatReadsSecondsOrBytes) {
  const std::vector<OptionSpec> table = option_table();
  int checked = 0;
  for (const auto& [quantity, unit] : {std::pair("time", "seconds"), std::pair("bytes", "bytes")}) {
    for (const UnitsRow& row : rows_of_page()) {
      if (row.quantity != quantity || row.alone != unit) continue;
      const std::set<std::string> named(row.options.begin(), row.options.end());
      for (const OptionSpec& option : table) {
        if (option.name == "compute") continue;  // which reads rates, too
        EXPECT_EQ(named.contains(option.name), option.unit == unit) << "--" << option.name;
        checked += option.unit == unit ? 1 : 0;
      }
    }
  }
  EXPECT_GE(checked, 8);
}

TEST(UnitsPage, NamesUnitsThatAreRead) {
  int checked = 0;
  for (const UnitsRow& row : rows_of_page()) {
    std::optional<double> (*parse)(std::string_view) = row.quantity == "time"                 ? parse_time
                                                       : row.quantity == "bytes"              ? parse_bytes
                                                       : row.quantity == "bits a second"      ? parse_bits_per_second
                                                       : row.quantity == "bytes a second"     ? parse_bytes_per_second
                                                       : row.quantity.starts_with("floating") ? parse_flops
                                                                                              : nullptr;
    for (const std::string& unit : row.units) {
      if (parse == nullptr || unit == "m") continue;
      EXPECT_TRUE(parse("3" + unit)) << unit;
      ++checked;
    }
  }
  EXPECT_GE(checked, 28);
  EXPECT_FALSE(parse_bits_per_second("10GB/s"));
}

}  // namespace
}  // namespace syncopate::experiments
