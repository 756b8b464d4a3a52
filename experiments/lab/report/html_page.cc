#include "experiments/lab/report/html_page.h"

#include <fmt/format.h>

#include "experiments/lab/report/html_text.h"

namespace syncopate::experiments {
namespace {

constexpr const char* kPageStyle = R"(
body { font-family: sans-serif; margin: 1.5em; color: #222; }
h1 { font-size: 1.4em; } h2 { font-size: 1.05em; font-weight: normal; max-width: 70em; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { padding: 0.25em 0.8em; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30em), 1fr)); gap: 1.5em; }
.charts svg { width: 100%; height: auto; max-width: 45em; }
pre { overflow-x: auto; background: #f6f6f6; padding: 0.6em; }
li { margin: 0.2em 0; max-width: 70em; }
@media (max-width: 600px) { body { margin: 0.6em; } th, td { padding: 0.25em 0.5em; font-size: 0.9em; } }
)";

}  // namespace

std::string html_page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0}</title>\n<style>{1}</style></head>\n"
      "<body><h1>{0}</h1>\n{2}</body></html>\n",
      html_text(title), kPageStyle, body);
}

std::string html_table(const std::vector<std::vector<std::string>>& rows) {
  std::string html = "<div class=\"wide\"><table>\n";
  for (const std::vector<std::string>& row : rows) {
    const char* const tag = &row == &rows.front() ? "th" : "td";
    html += "<tr>";
    for (const std::string& text : row) html += fmt::format("<{0}>{1}</{0}>", tag, html_text(text));
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string html_charts(const std::vector<std::string>& charts) {
  std::string html = "<div class=\"charts\">\n";
  for (const std::string& chart : charts) html += "<div>" + chart + "</div>\n";
  return html + "</div>\n";
}

std::string html_list(const std::vector<std::string>& sentences) {
  std::string html = "<ul>\n";
  for (const std::string& sentence : sentences) html += fmt::format("<li>{}</li>\n", html_text(sentence));
  return html + "</ul>\n";
}

}  // namespace syncopate::experiments
