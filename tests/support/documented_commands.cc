#include "tests/support/documented_commands.h"

#include <algorithm>
#include <regex>
#include <sstream>

namespace syncopate::testing_support {
namespace {

constexpr std::string_view kRest = "...";

std::string without_comment(const std::string& line) { return line.substr(0, line.find(" #")); }

// What stands between <!-- and -->, if the line is one comment; else empty.
std::string comment_in(const std::string& line) {
  if (!line.starts_with("<!-- ") || !line.ends_with(" -->")) return {};
  return line.substr(5, line.size() - 9);
}

bool is_command(const std::string& line) { return line.starts_with("./run_experiment"); }

// Puts the lines of a block to where they belong.
void take(const std::string& comment, int line, const std::vector<std::string>& lines,
          std::vector<DocumentedBlock>& blocks) {
  if (comment == "prints") {
    if (!blocks.empty()) blocks.back().prints = lines;
    return;
  }
  if (lines.empty() || !is_command(lines.front())) return;
  DocumentedBlock block{.line = line, .commands = {}, .prints = {}, .needs = {}};
  if (comment.starts_with("needs: ")) block.needs = comment.substr(7);
  bool goes_on = false;
  for (const std::string& text : lines) {
    std::string words = without_comment(text);
    const bool will_go_on = words.ends_with("\\");
    if (will_go_on) words.pop_back();
    if (goes_on) {
      block.commands.back() += words;
    } else if (is_command(text)) {
      block.commands.push_back(words);
    }
    goes_on = will_go_on;
  }
  blocks.push_back(block);
}

bool is_like(const std::string& shown, const std::string& printed) {
  if (!shown.ends_with(kRest)) return shape_of(shown) == shape_of(printed);
  return shape_of(printed).starts_with(shape_of(shown.substr(0, shown.size() - kRest.size())));
}

}  // namespace

std::vector<DocumentedBlock> documented_blocks(const std::string& page) {
  std::vector<DocumentedBlock> blocks;
  std::istringstream stream(page);
  std::string comment, before;
  std::vector<std::string> lines;
  int number = 0, begin = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    const bool is_fence = line.starts_with("```");
    if (is_fence && begin == 0) {
      begin = number + 1;
      comment = comment_in(before);
      lines.clear();
    } else if (is_fence) {
      take(comment, begin, lines, blocks);
      begin = 0;
    } else if (begin > 0) {
      lines.push_back(line);
    }
    before = line;
  }
  return blocks;
}

std::string shape_of(std::string_view line) {
  static const std::regex number("[-+]?[0-9][0-9,.]*(e[-+]?[0-9]+)?"), unit("# (ns|us|ms|s|min|h)(?![a-zA-Z])"),
      bytes("# [kMG]?B(?![a-zA-Z])"), verdict("faster|slower|earlier|later|better|worse|no difference shown"),
      gap("[ \t]+");
  std::string shape = std::regex_replace(std::string(line), number, "#");
  shape = std::regex_replace(shape, unit, "# time");
  shape = std::regex_replace(shape, bytes, "# bytes");
  shape = std::regex_replace(shape, verdict, "verdict");
  shape = std::regex_replace(shape, gap, " ");
  if (shape.starts_with(" ")) shape.erase(0, 1);
  if (shape.ends_with(" ")) shape.pop_back();
  return shape;
}

std::string first_line_missing(const std::vector<std::string>& shown, const std::vector<std::string>& printed) {
  auto from = printed.begin();
  for (const std::string& line : shown) {
    if (line == kRest || shape_of(line).empty()) continue;
    const auto found =
        std::find_if(from, printed.end(), [&](const std::string& other) { return is_like(line, other); });
    if (found == printed.end()) return line;
    from = found + 1;
  }
  return {};
}

}  // namespace syncopate::testing_support
