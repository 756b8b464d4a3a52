#include "experiments/lab/demo/demo_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/lab/demo/demo_text.h"
#include "experiments/lab/report/html_page.h"
#include "experiments/lab/report/html_text.h"

namespace syncopate::experiments {
namespace {

std::string paragraph(const std::string& text) { return fmt::format("<p>{}</p>\n", html_text(text)); }

std::string runs_html(const Demo& demo) {
  std::string list = "<ul>\n";
  for (const DemoRun& run : demo.runs) {
    std::vector<std::string> line = {"run_experiment"};
    line.insert(line.end(), run.words.begin(), run.words.end());
    const std::string page = compares(run) ? fmt::format(" <a href=\"{0}/comparison.html\">{0}</a>", run.name) : "";
    list += fmt::format("<li>{}{}</li>\n", html_command(line), page);
  }
  return list + "</ul>\n";
}

}  // namespace

std::string demo_html(const Demo& demo, const DemoOutcome& outcome) {
  std::string body = paragraph(demo.question);
  std::vector<std::string> choices;
  for (const DemoChoice& choice : demo.choices) choices.push_back(choice_text(choice));
  if (!choices.empty()) body += html_list(choices);
  body += "<h2>What was measured</h2>\n" + html_charts(outcome.charts) + paragraph(look_text(demo));
  body += "<h2>The answer</h2>\n" + paragraph(fmt::format("{}", fmt::join(outcome.sentences, " ")));
  body += "<h2>Exercises</h2>\n" + html_list(outcome.exercises);
  body += fmt::format("<p>Write a line for each into answer.toml: {}</p>\n",
                      html_command({"run_experiment", "demo", demo.name, "--check=answer.toml"}));
  body += "<h2>What ran</h2>\n" + runs_html(demo) +
          paragraph((demo.is_real ? "Real processes. " : "A simulated cluster, in virtual time. ") + outcome.machine);
  return html_page(demo.title, body);
}

}  // namespace syncopate::experiments
