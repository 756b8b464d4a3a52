#include "experiments/lab/demo/demo_answers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "common/text/number.h"
#include "common/text/printable_text.h"
#include "experiments/config/toml.h"

namespace syncopate::experiments {
namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool is_near(double given, double right, double tolerance) {
  constexpr double kRounding = 1e-9;
  return std::abs(given - right) <= (tolerance + kRounding) * std::abs(right);
}

CheckedAnswer checked(const DemoExercise& exercise, const FigureValue& right, const std::string& given) {
  CheckedAnswer answer{.key = exercise.key};
  if (right.number) {
    const std::optional<double> number = parse_number<double>(given);
    if (!number || !std::isfinite(*number)) {
      answer.line = fmt::format("{} = {}: must be a number", exercise.key, printable(given));
      return answer;
    }
    answer.is_right = is_near(*number, *right.number, exercise.tolerance);
  } else {
    answer.is_right = lower(given) == lower(*right.text);
  }
  answer.line = fmt::format("{} = {}: {}", exercise.key, printable(given),
                            answer.is_right ? "right" : "not right. " + exercise.hint);
  return answer;
}

// Returns which of the choices were right by the figures.
Result<std::string> verdict_of(const Demo& demo, const FigureLookup& figures) {
  std::vector<const DemoChoice*> right;
  for (const DemoChoice& choice : demo.choices) {
    SYNCOPATE_ASSIGN_OR_RETURN(const FigureValue holds, evaluate(choice.condition, figures));
    if (holds.is_true()) right.push_back(&choice);
  }
  if (right.empty()) return std::string("By these figures none of the choices was right.");
  if (right.size() == 1) return fmt::format("By these figures {} was right.", right.front()->letter);
  std::vector<std::string> letters;
  for (const DemoChoice* choice : right) letters.push_back(choice->letter);
  return fmt::format("By these figures {} were right.", fmt::join(letters, " and "));
}

}  // namespace

Result<std::vector<std::string>> answer_of(const Demo& demo, const FigureLookup& figures) {
  std::vector<std::string> sentences;
  if (!demo.choices.empty()) {
    SYNCOPATE_ASSIGN_OR_RETURN(std::string verdict, verdict_of(demo, figures));
    sentences.push_back(std::move(verdict));
  }
  for (const DemoSentence& sentence : demo.answer) {
    bool holds = true;
    if (!sentence.condition.empty()) {
      SYNCOPATE_ASSIGN_OR_RETURN(const FigureValue value, evaluate(sentence.condition, figures));
      holds = value.is_true();
    }
    const std::string& said = holds ? sentence.text : sentence.otherwise;
    if (said.empty()) continue;
    SYNCOPATE_ASSIGN_OR_RETURN(std::string text, filled(said, figures));
    sentences.push_back(std::move(text));
  }
  return sentences;
}

Result<std::string> exercise_text(const DemoExercise& exercise, const FigureLookup& figures) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string text, filled(exercise.text, figures));
  return fmt::format("{} ({} = ...)", text, exercise.key);
}

Result<std::vector<CheckedAnswer>> check_answers(const Demo& demo, const FigureLookup& figures, std::string_view toml) {
  SYNCOPATE_ASSIGN_OR_RETURN(const auto entries, read_toml(toml));
  std::map<std::string, std::string> given;
  for (const auto& [key, value] : entries) {
    std::vector<std::string> keys;
    for (const DemoExercise& exercise : demo.exercises) keys.push_back(exercise.key);
    if (std::ranges::find(keys, key) == keys.end()) {
      return Status::invalid_argument(
          fmt::format("{}: no exercise has this key; they have {}", printable(key), fmt::join(keys, ", ")));
    }
    if (!given.emplace(key, value).second) return Status::invalid_argument(fmt::format("{}: stands twice", key));
  }
  std::vector<CheckedAnswer> answers;
  for (const DemoExercise& exercise : demo.exercises) {
    SYNCOPATE_ASSIGN_OR_RETURN(const FigureValue right, evaluate(exercise.answer, figures));
    if (!right.has_value()) {
      return Status::invalid_argument(
          fmt::format("{}: this run has no such figure; run the demonstration again", exercise.key));
    }
    const auto found = given.find(exercise.key);
    if (found == given.end()) {
      answers.push_back({exercise.key, false,
                         fmt::format("{0}: is missing; add a line {0} = {1}", exercise.key,
                                     right.number ? "a number" : "\"a word\"")});
    } else {
      answers.push_back(checked(exercise, right, found->second));
    }
  }
  return answers;
}

}  // namespace syncopate::experiments
