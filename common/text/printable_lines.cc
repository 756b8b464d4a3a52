#include "common/text/printable_lines.h"

#include "common/text/printable_text.h"

namespace syncopate {
namespace {

constexpr std::size_t kLongestLine = 1 << 14;

}  // namespace

std::string printable_lines(std::string_view text) {
  std::string lines;
  for (;;) {
    const std::size_t end = text.find('\n');
    lines += printable(text.substr(0, end), kLongestLine);
    if (end == std::string_view::npos) return lines;
    lines += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace syncopate
