#include "experiments/config/wrapped_text.h"

#include <fmt/format.h>

#include <algorithm>
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

std::string wrapped_prose(const std::string& lines, int columns) {
  if (columns <= 0) return lines;
  std::string text;
  std::size_t begin = 0;
  while (begin < lines.size()) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    const std::string line = lines.substr(begin, end - begin);
    const std::size_t indent = line.find_first_not_of(' ');
    const bool is_prose = indent != std::string::npos && line.find("  ", indent) == std::string::npos;
    if (is_prose && line.size() > static_cast<std::size_t>(columns)) {
      text += wrapped(line, static_cast<int>(indent), columns);
    } else {
      text += line + "\n";
    }
    begin = end + 1;
  }
  if (!text.empty() && !lines.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace syncopate::experiments
