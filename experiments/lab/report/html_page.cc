#include "experiments/lab/report/html_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "experiments/lab/report/chart_json.h"
#include "experiments/lab/report/html_text.h"
#include "experiments/lab/report/page_parts.h"

namespace syncopate::experiments {
namespace {

constexpr std::string_view kChartLibrary = "chart.min";

constexpr std::size_t kLongTable = 24;  // rows; a longer one scrolls below its heading

std::string scripts() {
  std::string all = fmt::format("<script>{}</script>\n<script>", page_scripts().at(kChartLibrary));
  for (const auto& [name, text] : page_scripts()) {
    if (name != kChartLibrary) all += text;
  }
  return all + "</script>\n";
}

std::string row_of(const std::vector<std::string>& row, const char* tag, const char* more = "") {
  std::string html = "<tr>";
  for (const std::string& text : row) html += fmt::format("<{0}{1}>{2}</{0}>", tag, more, html_text(text));
  return html + "</tr>\n";
}

std::string chart_figure(const AnyChart& chart) {
  const std::string note = std::visit([](const auto& one) { return one.note; }, chart);
  return fmt::format(
      "<figure class=\"chart\"><figcaption>{}</figcaption>\n"
      "<div class=\"box\"><canvas role=\"img\" aria-label=\"{}\"></canvas></div>{}\n"
      "<script type=\"application/json\">{}</script></figure>\n",
      html_text(title_of(chart)), html_text(chart_sentence(chart)),
      note.empty() ? "" : fmt::format("<p class=\"note\">{}</p>", html_text(note)), chart_json(chart));
}

}  // namespace

std::string html_page(const std::string& title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0}</title>\n<style>{1}</style></head>\n"
      "<body><main><h1>{0}</h1>\n<noscript><p>The charts of this page are drawn by scripts, which are switched off. "
      "Its "
      "tables are whole.</p></noscript>\n{2}</main>\n{3}</body></html>\n",
      html_text(title), page_styles().at("page"), body, scripts());
}

std::string html_table(const std::vector<std::vector<std::string>>& rows, const std::string& name) {
  std::string html = fmt::format(
      "<div class=\"wide{1}\" role=\"region\" tabindex=\"0\" aria-label=\"{0}\"><table aria-label=\"{0}\">\n",
      html_text(name), rows.size() > kLongTable ? " long" : "");
  for (const std::vector<std::string>& row : rows) {
    const bool is_heading = &row == &rows.front();
    if (is_heading) html += "<thead>\n" + row_of(row, "th", " scope=\"col\"") + "</thead><tbody>\n";
    if (!is_heading) html += row_of(row, "td");
  }
  return html + (rows.empty() ? "" : "</tbody>") + "</table></div>\n";
}

std::string html_facts(const std::vector<std::vector<std::string>>& rows, const std::string& name) {
  std::string html = fmt::format(
      "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"{0}\">"
      "<table class=\"plain\" aria-label=\"{0}\"><tbody>\n",
      html_text(name));
  for (const std::vector<std::string>& row : rows) html += row_of(row, "td");
  return html + "</tbody></table></div>\n";
}

std::string html_charts(const std::vector<AnyChart>& charts) {
  if (std::ranges::none_of(charts, has_something)) return {};
  std::string html = "<div class=\"charts\">\n";
  for (const AnyChart& chart : charts) {
    if (has_something(chart)) html += chart_figure(chart);
  }
  return html + "</div>\n";
}

std::string html_command(const std::vector<std::string>& words) {
  std::string html;
  for (const std::string& word : words) {
    html += fmt::format("{}<span class=\"word\">{}</span>", html.empty() ? "" : " ", html_text(word));
  }
  return fmt::format("<code>{}</code>", html);
}

std::string html_folded(const std::string& summary, const std::string& html) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", html_text(summary), html);
}

std::string html_list(const std::vector<std::string>& sentences) {
  if (sentences.empty()) return {};
  std::string html = "<ul>\n";
  for (const std::string& sentence : sentences) html += fmt::format("<li>{}</li>\n", html_text(sentence));
  return html + "</ul>\n";
}

std::string html_lines(const std::string& title, const std::string& text) {
  if (text.empty()) return {};
  std::string lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines += html_text(std::string_view(text).substr(begin, end - begin)) + "\n";
    begin = end + 1;
  }
  return fmt::format("<h2>{}</h2>\n<pre tabindex=\"0\">{}</pre>\n", html_text(title), lines);
}

}  // namespace syncopate::experiments
