#include "experiments/lab/demo/demo_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "experiments/config/wrapped_text.h"

namespace syncopate::experiments {
namespace {

std::string kind_of(const Demo& demo) { return demo.is_real ? "real processes" : "simulated cluster"; }

// Returns "1. text", wrapped, with the lines behind the first below the text.
std::string numbered(std::size_t number, const std::string& text, int columns) {
  constexpr int kIndent = 5;
  std::string lines = wrapped(text, kIndent, columns);
  const std::string label = fmt::format("  {}. ", number);
  return lines.replace(0, kIndent, label);
}

}  // namespace

std::string demo_list(const std::vector<Demo>& demos, int columns) {
  std::string text = "Each demonstration asks a question, has runs answer it, and sets three exercises:\n\n";
  for (const Demo& demo : demos) {
    text += fmt::format("{}  ({}, about {} s)\n", demo.name, kind_of(demo), demo.seconds);
    text += wrapped(demo.title, 4, columns);
  }
  return text + "\nrun_experiment demo NAME runs one; --help=demo says more\n";
}

std::string choice_text(const DemoChoice& choice) { return fmt::format("{}: {}", choice.letter, choice.text); }

std::string look_text(const Demo& demo) { return "Look: " + demo.look; }

std::string question_text(const Demo& demo, int columns) {
  std::string text =
      wrapped(fmt::format("{}: {}", demo.name, demo.title), 0, columns) + "\n" + wrapped(demo.question, 0, columns);
  for (const DemoChoice& choice : demo.choices) text += wrapped(choice_text(choice), 2, columns);
  text += fmt::format("\nabout {} s, {}:\n", demo.seconds, kind_of(demo));
  for (const DemoRun& run : demo.runs) {
    text += wrapped(fmt::format("run_experiment {}", fmt::join(run.words, " ")), 2, columns);
  }
  return text;
}

std::string answer_text(const Demo& demo, const std::vector<std::string>& sentences,
                        const std::vector<std::string>& exercises, int columns) {
  std::string text = wrapped(look_text(demo), 0, columns) + "\n";
  text += wrapped(fmt::format("{}", fmt::join(sentences, " ")), 0, columns);
  text += "\nExercises\n";
  for (std::size_t i = 0; i < exercises.size(); ++i) text += numbered(i + 1, exercises[i], columns);
  return text;
}

}  // namespace syncopate::experiments
