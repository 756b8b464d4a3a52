#include "experiments/config/bare_quantities.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>

#include "common/text/format.h"
#include "common/text/number.h"
#include "common/text/printable_text.h"
#include "common/text/quantity.h"
#include "experiments/config/line_options.h"
#include "experiments/config/submit_line.h"

namespace syncopate::experiments {
namespace {

std::string unit_of(const std::vector<OptionSpec>& options, const std::string& name) {
  if (name == "compute") return "seconds";  // which reads rates, too
  const auto option = std::ranges::find(options, name, &OptionSpec::name);
  return option == options.end() || unit_hint(option->unit).empty() ? "" : option->unit;
}

std::string with_unit(double value, const std::string& unit) {
  if (unit == "bytes") return value < 1e3 ? fmt::format("{:g} B", value) : format_bytes(value);
  return value < 1 ? fmt::format("{:g} ms", 1e3 * value) : fmt::format("{:g} s", value);
}

void add_bare(const std::string& flag, const std::string& values, const std::string& unit,
              std::vector<std::string>& lines) {
  std::istringstream parts(values);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::optional<double> value = parse_number<double>(part);
    if (!value || !std::isfinite(*value) || *value <= 0) continue;
    lines.push_back(fmt::format("{}={}: taken as {}, since a number without a unit is in {}", printable(flag), part,
                                with_unit(*value, unit), unit));
  }
}

}  // namespace

std::vector<std::string> bare_quantities(const std::vector<std::string>& words) {
  std::vector<OptionSpec> options = all_options();
  // Its own options refuse a number without a unit, though another command's of that name reads it.
  if (!words.empty() && words.front() == "submit") {
    const std::vector<OptionSpec> own = submit_options();
    options.insert(options.begin(), own.begin(), own.end());
  }
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    if (!words[i].starts_with("--")) continue;
    const std::size_t equals = std::min(words[i].find('='), words[i].size());
    std::string flag = words[i].substr(0, equals), value;
    if (equals < words[i].size()) {
      value = words[i].substr(equals + 1);
    } else if (i + 1 < words.size()) {
      value = words[i + 1];
    }
    if (flag == "--vary") {
      flag = "--" + value.substr(0, value.find('='));
      value = value.find('=') == value.npos ? "" : value.substr(value.find('=') + 1);
    }
    if (const std::string unit = unit_of(options, flag.substr(2)); !unit.empty()) add_bare(flag, value, unit, lines);
  }
  return lines;
}

}  // namespace syncopate::experiments
