#include "experiments/config/wrapped_text.h"

#include <fmt/format.h>

#include <sstream>

namespace syncopate::experiments {

std::string wrapped(const std::string& text, int indent, int columns) {
  std::string lines, line;
  std::istringstream words(text);
  const auto end_line = [&] {
    if (!line.empty()) lines += fmt::format("{:{}}{}\n", "", indent, line);
    line.clear();
  };
  for (std::string word; words >> word;) {
    const std::size_t length = line.size() + (line.empty() ? 0 : 1) + word.size();
    if (static_cast<std::size_t>(indent) + length > static_cast<std::size_t>(columns)) end_line();
    line += (line.empty() ? "" : " ") + word;
  }
  end_line();
  return lines;
}

}  // namespace syncopate::experiments
