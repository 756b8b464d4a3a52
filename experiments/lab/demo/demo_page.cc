#include "experiments/lab/demo/demo_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/lab/report/html_page.h"
#include "experiments/lab/report/html_text.h"

namespace syncopate::experiments {
namespace {

std::string paragraph(const std::string& text) { return fmt::format("<p>{}</p>\n", html_text(text)); }

std::string runs_html(const Demo& demo) {
  std::string list = "<ul>\n";
  for (const DemoRun& run : demo.runs) {
    const std::string line = html_text(fmt::format("run_experiment {}", fmt::join(run.words, " ")));
    const std::string page = compares(run) ? fmt::format(" <a href=\"{0}/comparison.html\">{0}</a>", run.name) : "";
    list += fmt::format("<li><code>{}</code>{}</li>\n", line, page);
  }
  return list + "</ul>\n";
}

}  // namespace

std::string demo_html(const Demo& demo, const DemoOutcome& outcome) {
  std::string body = paragraph(demo.question);
  if (!demo.choices.empty()) body += html_list(demo.choices);
  body += "<h2>What was measured</h2>\n" + html_charts(outcome.charts) + paragraph(demo.look);
  body += "<h2>The answer</h2>\n" + paragraph(fmt::format("{}", fmt::join(outcome.sentences, " ")));
  body += "<h2>Exercises</h2>\n" + html_list(outcome.exercises);
  body += paragraph(
      fmt::format("Write a line for each into answer.toml: run_experiment demo {} --check=answer.toml", demo.name));
  body += "<h2>What ran</h2>\n" + runs_html(demo) +
          paragraph((demo.is_real ? "Real processes. " : "A simulated cluster, in virtual time. ") + outcome.machine);
  return html_page(demo.title, body);
}

}  // namespace syncopate::experiments
