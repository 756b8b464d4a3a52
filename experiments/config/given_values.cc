#include "experiments/config/given_values.h"

#include <algorithm>

#include "common/text/quantity.h"

namespace syncopate::experiments {

Result<double> time_in(const std::string& name, const std::string& text, double least, double most) {
  const std::optional<double> time = parse_in_unit(text, "seconds");
  if (time && *time >= least && *time <= most) return *time;
  return Status::invalid_argument(
      fmt::format("--{}={}: must be {:g} to {:g} seconds{}", name, text, least, most, unit_hint("seconds")));
}

Result<double> bytes_in(const std::string& name, const std::string& text, double least, double most,
                        std::string_view range) {
  const std::optional<double> bytes = parse_in_unit(text, "bytes");
  if (bytes && *bytes >= least && *bytes <= most) return *bytes;
  return Status::invalid_argument(fmt::format("--{}={}: must be {}", name, text, range));
}

Result<std::vector<std::string>> parts_in(const std::string& name, const std::string& text) {
  constexpr std::size_t kMostParts = 64;
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  if (parts.size() <= kMostParts && std::ranges::find(parts, "") == parts.end()) return parts;
  return Status::invalid_argument(
      fmt::format("--{}={}: must be 1 to {} values with commas between them", name, text, kMostParts));
}

Result<std::vector<int>> counts_in(const std::string& name, const std::string& text, int least, int most) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<std::string> parts, parts_in(name, text));
  std::vector<int> counts;
  for (const std::string& part : parts) {
    SYNCOPATE_ASSIGN_OR_RETURN(const int count, number_in<int>(name, part, least, most, ", or a list of such"));
    counts.push_back(count);
  }
  return counts;
}

}  // namespace syncopate::experiments
