#include "experiments/lab/report/html_text.h"

#include "common/text/printable_text.h"

namespace syncopate::experiments {
namespace {

constexpr std::size_t kLongest = 1 << 14;

}  // namespace

std::string html_text(std::string_view text) {
  std::string html;
  for (const char c : printable(text, kLongest)) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      case '\'':
        html += "&#39;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

}  // namespace syncopate::experiments
