#include "common/launch/node_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "common/text/number.h"
#include "common/text/printable_text.h"

namespace syncopate {
namespace {

Status wrong_list(std::string_view text) {
  return Status::invalid_argument(
      fmt::format("SLURM_JOB_NODELIST={}: must be names of hosts, as in node[1-3],login", printable(text)));
}

// Takes the text up to the next comma that is not within brackets.
std::string_view take_part(std::string_view& text) {
  bool within = false;
  std::size_t end = 0;
  for (; end < text.size() && (within || text[end] != ','); ++end) {
    if (text[end] == '[') within = true;
    if (text[end] == ']') within = false;
  }
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

// Adds "07" and "08" for "07-08", each between `before` and `behind`.
bool add_range(std::string_view range, std::string_view before, std::string_view behind,
               std::vector<std::string>& names) {
  const std::size_t dash = std::min(range.find('-'), range.size());
  const std::string_view low = range.substr(0, dash);
  const std::string_view high = dash == range.size() ? low : range.substr(dash + 1);
  const std::optional<int> first = parse_number<int>(low), last = parse_number<int>(high);
  if (!first || !last || *first < 0 || *last < *first) return false;
  for (int number = *first; number <= *last && names.size() <= kMostNodes; ++number) {
    names.push_back(fmt::format("{}{:0{}}{}", before, number, low.size(), behind));
  }
  return true;
}

}  // namespace

Result<std::vector<std::string>> parse_node_list(std::string_view text) {
  const std::string_view whole = text;
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::string_view part = take_part(text);
    const std::size_t begin = part.find('['), end = part.find(']');
    if (begin == std::string_view::npos && !part.empty()) {
      names.emplace_back(part);
      continue;
    }
    if (begin == std::string_view::npos || end == std::string_view::npos || end < begin + 2) return wrong_list(whole);
    std::string_view ranges = part.substr(begin + 1, end - begin - 1);
    while (!ranges.empty()) {
      const std::string_view range = ranges.substr(0, ranges.find(','));
      ranges.remove_prefix(std::min(range.size() + 1, ranges.size()));
      if (!add_range(range, part.substr(0, begin), part.substr(end + 1), names)) return wrong_list(whole);
    }
    if (names.size() > kMostNodes) return wrong_list(whole);
  }
  if (names.empty()) return wrong_list(whole);
  return names;
}

}  // namespace syncopate
