#include "experiments/lab/report/mode_colours.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace syncopate::experiments {
namespace {

constexpr int kModeColours = 8;  // without grey

struct UsualColour {
  std::string_view mode;  // or how it begins
  int colour;
};
constexpr UsualColour kUsualColours[] = {{"local", 6},      {"allreduce", 0}, {"ps:async", 1}, {"ps:sync", 2},
                                         {"ps:bounded", 4}, {"ps:backup", 3}, {"ps:easgd", 7}, {"allreduce:", 5}};

}  // namespace

std::map<std::string, int> mode_colours(const std::vector<std::string>& modes) {
  std::map<std::string, int> colours;
  std::set<int> taken;
  const auto give = [&](const std::string& mode, int colour) {
    if (colours.contains(mode) || taken.contains(colour)) return;
    colours[mode] = colour;
    taken.insert(colour);
  };
  for (const auto& [usual, colour] : kUsualColours) {
    for (const std::string& mode : modes) {
      if (mode == usual) give(mode, colour);
    }
  }
  for (const auto& [usual, colour] : kUsualColours) {
    for (const std::string& mode : modes) {
      if (mode.starts_with(usual)) give(mode, colour);
    }
  }
  int next = 0, shared = 0;
  for (const std::string& mode : modes) {
    if (colours.contains(mode)) continue;
    while (next < kModeColours && taken.contains(next)) ++next;
    if (next < kModeColours) {
      give(mode, next);
    } else {
      colours[mode] = shared++ % kModeColours;
    }
  }
  return colours;
}

std::vector<int> row_colours(const std::vector<std::string>& modes) {
  const std::map<std::string, int> colours = mode_colours(modes);
  std::vector<int> rows;
  for (const std::string& mode : modes) {
    rows.push_back(colours.size() == 1 ? static_cast<int>(rows.size()) : colours.at(mode));
  }
  return rows;
}

}  // namespace syncopate::experiments
