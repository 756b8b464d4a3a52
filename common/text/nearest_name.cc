#include "common/text/nearest_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "common/text/printable_text.h"

namespace syncopate {
namespace {

// Letters that are replaced, added, left out, or exchanged with their neighbours.
std::size_t distance_between(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1), above, above_that;
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    above_that = std::exchange(above, row);
    row[0] = i;
    for (std::size_t j = 1; j < row.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, above[j] + 1, row[j - 1] + 1});
      const bool is_exchanged = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (is_exchanged) row[j] = std::min(row[j], above_that[j - 2] + 1);
    }
  }
  return row.back();
}

// Returns "lr" of "learning-rate".
std::string initials_of(std::string_view name) {
  std::string initials;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (i == 0 || name[i - 1] == '-') initials += name[i];
  }
  return initials;
}

bool shortens(std::string_view name, std::string_view candidate) {
  if (name.size() < 2) return false;
  return initials_of(candidate) == name || candidate.starts_with(std::string(name) + "-") ||
         name.ends_with("-" + std::string(candidate));
}

std::size_t farthest(std::size_t letters) {
  if (letters < 3) return 0;
  return letters == 3 ? 1 : std::max<std::size_t>(2, letters / 3);
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  std::string small(name);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string nearest;
  std::size_t least = farthest(small.size()) + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = distance_between(small, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  if (!nearest.empty()) return nearest;
  const auto meant = std::ranges::find_if(known, [&](const auto& candidate) { return shortens(small, candidate); });
  return meant == known.end() ? std::string() : *meant;
}

std::string unknown_entry(std::string_view name, const std::vector<std::string>& known) {
  const std::string shown = printable(name, 80), nearest = nearest_name(shown, known);
  return fmt::format("{}: no such option; {}", shown,
                     nearest.empty() ? "--help lists all" : fmt::format("did you mean {}?", nearest));
}

}  // namespace syncopate
