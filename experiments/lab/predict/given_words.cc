#include "experiments/lab/predict/given_words.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "common/text/quantity.h"
#include "experiments/config/nearest_name.h"

namespace syncopate::experiments {

Result<GivenWords> given_words(std::string_view command, const std::vector<std::string>& words,
                               const std::vector<std::string>& required, const std::vector<std::string>& optional) {
  std::vector<std::string> known = required;
  known.insert(known.end(), optional.begin(), optional.end());
  GivenWords given;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const std::string name = word.starts_with("--") ? word.substr(2, equals - 2) : word;
    if (!word.starts_with("--") || std::ranges::find(known, name) == known.end()) {
      const std::string nearest = nearest_name(name, known);
      const std::string hint = nearest.empty() ? "" : fmt::format("; did you mean --{}?", nearest);
      return Status::invalid_argument(
          fmt::format("{}: {}: no such option; there are --{}{}", command, word, fmt::join(known, ", --"), hint));
    }
    if (equals == std::string::npos || equals + 1 == word.size()) {
      return Status::invalid_argument(fmt::format("--{0}: needs a value, as in --{0}=VALUE", name));
    }
    if (!given.emplace(name, word.substr(equals + 1)).second) {
      return Status::invalid_argument(fmt::format("--{}: given twice; once is enough", name));
    }
  }
  for (const std::string& name : required) {
    if (!given.contains(name)) return Status::invalid_argument(fmt::format("{}: --{} is missing", command, name));
  }
  return given;
}

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
