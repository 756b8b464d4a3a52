#include "experiments/lab/demo/demo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "common/text/number.h"
#include "experiments/config/command_line.h"
#include "experiments/config/resolution.h"
#include "experiments/lab/demo/demo_answers.h"
#include "experiments/lab/demo/demo_text.h"
#include "tests/experiments/lab/demo/small_demo.h"

namespace syncopate::experiments {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;

Result<CommandLine> line_of(const DemoRun& run) {
  std::vector<const char*> line = {"run_experiment"};
  for (const std::string& word : run.words) line.push_back(word.c_str());
  return parse_command_line(static_cast<int>(line.size()), line.data());
}

// Knows which rows the runs of a demonstration will have, and gives each figure of theirs one value.
class Presumed : public FigureLookup {
 public:
  explicit Presumed(const Demo& demo) : demo_(demo) {
    for (const DemoRun& run : demo.runs) {
      const Result<CommandLine> line = line_of(run);
      if (!line.ok()) continue;
      for (const ComparedRun& row : line->runs) rows_[run.name].push_back(row.label);
    }
  }

  Result<std::vector<NamedFigure>> at(const std::vector<std::string>& path) const override {
    const bool is_run = std::ranges::find(demo_.runs, path[0], &DemoRun::name) != demo_.runs.end();
    const bool is_why = std::ranges::find(demo_.whys, path[0], &DemoWhy::name) != demo_.whys.end();
    if (!is_run && !is_why) return Status::invalid_argument(path[0] + ": no such run");
    if (path.size() < 2) return Status::invalid_argument(path[0] + ": is no figure");
    if (!rows_.contains(path[0]) || path[1] == "crossovers") {
      std::vector<NamedFigure> found(1, {path[1], {.number = 1.5}});
      return found;
    }
    const bool is_prefix = path[1].ends_with('*');
    std::vector<NamedFigure> found;
    for (const std::string& label : rows_.at(path[0])) {
      const bool fits = is_prefix ? label.starts_with(path[1].substr(0, path[1].size() - 1)) : label == path[1];
      if (fits) found.push_back({label, {.number = 1.5}});
    }
    if (found.empty()) return Status::invalid_argument(path[0] + " has no row " + path[1]);
    return found;
  }

  Result<FigureValue> named(const std::string& name) const override {
    const auto found = demo_.figures.find(name);
    if (found == demo_.figures.end()) return Status::invalid_argument(name + ": no such figure");
    return evaluate(found->second, *this);
  }

 private:
  const Demo& demo_;
  std::map<std::string, std::vector<std::string>> rows_;
};

void expect_filled(const std::string& text, const FigureLookup& figures, const std::string& where) {
  const Result<std::string> done = filled(text, figures);
  EXPECT_TRUE(done.ok()) << where << ": " << done.status().message();
}

TEST(EveryDemo, NamesRunsRowsAndFiguresThatThereAre) {
  EXPECT_GE(demo_texts().size(), 10u);
  std::set<int> places;
  for (const auto& [name, text] : demo_texts()) {
    const Result<Demo> demo = open_demo(std::string(name));
    ASSERT_TRUE(demo.ok()) << name << ": " << demo.status().message();
    EXPECT_LE(demo->seconds, 60) << name;
    EXPECT_GE(demo->choices.size(), 2u) << name;
    EXPECT_TRUE(places.insert(demo->place).second) << name << ": place " << demo->place << " twice";
    for (const DemoRun& run : demo->runs) {
      const Result<CommandLine> line = line_of(run);
      ASSERT_TRUE(line.ok()) << name << ", " << run.name << ": " << line.status().message();
      const bool is_simulated = line->config.cluster == ClusterKind::kSimulated;
      EXPECT_EQ(is_simulated, !demo->is_real) << name << ", " << run.name;
    }
    const Presumed figures(*demo);
    for (const auto& [figure, formula] : demo->figures) expect_filled("{" + figure + "}", figures, figure);
    for (const DemoChoice& choice : demo->choices) expect_filled("{" + choice.condition + "}", figures, choice.letter);
    for (const DemoSentence& sentence : demo->answer) {
      if (!sentence.condition.empty()) expect_filled("{" + sentence.condition + "}", figures, "a condition");
      expect_filled(sentence.text, figures, "a sentence");
      expect_filled(sentence.otherwise, figures, "a sentence");
    }
    for (const DemoPlot& plot : demo->plots) {
      for (const auto& [bar, formula] : plot.bars) expect_filled("{" + formula + "}", figures, bar);
      const bool has_run = std::ranges::find(demo->runs, plot.run, &DemoRun::name) != demo->runs.end();
      EXPECT_LE(plot.title.size(), 80u) << "is not cut in a terminal";
      EXPECT_TRUE(has_run || plot.kind == DemoPlot::Kind::kBars) << name << ": " << plot.title;
    }
    std::set<std::string> keys;
    for (const DemoExercise& exercise : demo->exercises) {
      expect_filled(exercise.text, figures, exercise.key);
      expect_filled("{" + exercise.answer + "}", figures, exercise.key);
      EXPECT_TRUE(keys.insert(exercise.key).second) << name << ": " << exercise.key << " twice";
    }
  }
}

TEST(EveryDemo, AsksWhereToLookAndClaimsNothingThere) {
  const auto asks = [](std::string_view part) {
    for (const char* preposition : {"from ", "at ", "in ", "up to "}) {
      if (part.starts_with(preposition)) part.remove_prefix(std::strlen(preposition));
    }
    for (const char* word : {"who ", "which ", "where ", "whether ", "how ", "what "}) {
      if (part.starts_with(word)) return true;
    }
    return false;
  };
  for (const auto& [name, text] : demo_texts()) {
    const std::string look = open_demo(std::string(name))->look;
    EXPECT_TRUE(asks(look)) << name << ": " << look;
    for (std::size_t at = look.find(", and "); at != std::string::npos; at = look.find(", and ", at + 1)) {
      EXPECT_TRUE(asks(std::string_view(look).substr(at + 6))) << name << ": " << look;
    }
    EXPECT_EQ(look.find(';'), std::string::npos) << name << ": " << look;
  }
}

// The numbers that stand before one of `units`, as digits or as a word: 16 in "Sixteen workers" and in "16 workers".
std::vector<double> numbers_before(const std::string& text, const std::set<std::string>& units) {
  const std::vector<std::string> spelt{"one",   "two",   "three", "four", "five",    "six",
                                       "seven", "eight", "nine",  "ten",  "sixteen", "thirty-two"};
  const std::vector<double> values{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 32};
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    while (!word.empty() && std::ispunct(static_cast<unsigned char>(word.back())) != 0) word.pop_back();
    std::ranges::transform(word, word.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    words.push_back(word);
  }
  const auto number = [&](const std::string& word) -> std::optional<double> {
    const auto found = std::ranges::find(spelt, word);
    if (found != spelt.end()) return values[static_cast<std::size_t>(found - spelt.begin())];
    return parse_number<double>(word);
  };
  std::vector<double> numbers;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!units.contains(words[i])) continue;
    // "four, sixteen or thirty-two workers" has three.
    for (std::size_t at = i; at > 0; --at) {
      if (words[at - 1] == "or" || words[at - 1] == "and") continue;
      const std::optional<double> value = number(words[at - 1]);
      if (!value) break;
      numbers.push_back(*value);
    }
  }
  return numbers;
}

// What the question and the titles of plots say of a job is so in its runs.
TEST(EveryDemo, AsksAboutTheJobsThatItRuns) {
  int checked = 0;
  for (const auto& [name, text] : demo_texts()) {
    const Result<Demo> demo = open_demo(std::string(name));
    std::set<double> workers, servers, batches, epochs, rates, steps;
    for (const DemoRun& run : demo->runs) {
      const Result<CommandLine> line = line_of(run);
      ASSERT_TRUE(line.ok()) << name;
      std::vector<RunRequest> configs{line->config};
      for (const ComparedRun& row : line->runs) configs.push_back(row.config);
      for (const RunRequest& request : configs) {
        const ResolvedRun config = presumed(request);
        workers.insert(config.workers);
        servers.insert(config.servers);
        batches.insert(config.batch_size);
        batches.insert(config.batch_size * config.workers);
        epochs.insert(static_cast<double>(config.epochs));
        if (config.shape) rates.insert(static_cast<double>(config.shape->bits_per_second));
        if (config.compute.step) steps.insert(std::round(seconds(*config.compute.step) * 1e3));
      }
    }
    std::string said = demo->title + " " + demo->question;
    for (const DemoPlot& plot : demo->plots) said += " . " + plot.title;
    const auto expect_run = [&](const std::set<std::string>& units, const std::set<double>& run, double factor) {
      for (const double number : numbers_before(said, units)) {
        EXPECT_TRUE(run.contains(number * factor)) << name << ": " << number << " " << *units.begin();
        ++checked;
      }
    };
    expect_run({"workers", "gpus"}, workers, 1);
    expect_run({"servers"}, servers, 1);
    expect_run({"samples"}, batches, 1);
    expect_run({"passes"}, epochs, 1);
    expect_run({"mb/s"}, rates, 1e6);
    if (name != "horovod") expect_run({"gb/s"}, rates, 1e9);  // whose question has the links of those who published
    expect_run({"ms"}, steps, 1);
  }
  EXPECT_GE(checked, 20);
}

// Every figure has a value of its own, which follows from its path.
class Distinct : public FigureLookup {
 public:
  explicit Distinct(const Demo& demo) : demo_(demo) {}

  Result<std::vector<NamedFigure>> at(const std::vector<std::string>& path) const override {
    std::string name;
    for (const std::string& part : path) name += "/" + part;
    const double value = 1 + static_cast<double>(std::hash<std::string>()(name) % 100'003) / 100'003;
    std::vector<NamedFigure> found(1, {path.back(), {.number = value}});
    if (name.find('*') != std::string::npos) found.push_back({path.back() + "2", {.number = 1.5 * value}});
    return found;
  }

  Result<FigureValue> named(const std::string& name) const override { return evaluate(demo_.figures.at(name), *this); }

 private:
  const Demo& demo_;
};

// Returns the formulas that stand in braces.
std::vector<std::string> formulas_in(const std::string& text) {
  std::vector<std::string> formulas;
  for (std::size_t open = text.find('{'); open != std::string::npos; open = text.find('{', open + 1)) {
    const std::string inside = text.substr(open + 1, text.find('}', open) - open - 1);
    formulas.push_back(inside.substr(0, inside.find('|')));
  }
  return formulas;
}

TEST(EveryDemo, LeavesTheAnswersOfItsExercisesToThePerson) {
  for (const auto& [name, text] : demo_texts()) {
    const Result<Demo> demo = open_demo(std::string(name));
    const Distinct figures(*demo);
    std::string said = demo->question;
    for (const DemoSentence& sentence : demo->answer) said += sentence.text + sentence.otherwise;
    for (const DemoExercise& exercise : demo->exercises) said += exercise.text;
    for (const std::string& formula : formulas_in(said)) {
      const Result<FigureValue> shown = evaluate(formula, figures);
      if (!shown.ok() || !shown->number) continue;
      for (const DemoExercise& exercise : demo->exercises) {
        const Result<FigureValue> right = evaluate(exercise.answer, figures);
        if (!right.ok() || !right->number) continue;
        EXPECT_GT(std::abs(*shown->number / *right->number - 1), 1e-9)
            << name << ": {" << formula << "} is the answer of " << exercise.key;
      }
    }
  }
}

// Has the figures of these paths; all others are 1.
class Invented : public FigureLookup {
 public:
  Invented(const Demo& demo, std::map<std::string, double> values) : demo_(demo), values_(std::move(values)) {}

  Result<std::vector<NamedFigure>> at(const std::vector<std::string>& path) const override {
    std::string name;
    for (const std::string& part : path) name += (name.empty() ? "" : "/") + part;
    const auto found = values_.find(name);
    return std::vector<NamedFigure>(1, {path.back(), {.number = found == values_.end() ? 1 : found->second}});
  }

  Result<FigureValue> named(const std::string& name) const override { return evaluate(demo_.figures.at(name), *this); }

 private:
  const Demo& demo_;
  std::map<std::string, double> values_;
};

std::string answer_by(const char* name, const std::map<std::string, double>& values) {
  const Result<Demo> demo = open_demo(name);
  const Result<std::vector<std::string>> sentences = answer_of(*demo, Invented(*demo, values));
  EXPECT_TRUE(sentences.ok()) << sentences.status().message();
  std::string text;
  if (sentences.ok()) {
    for (const std::string& sentence : *sentences) text += sentence + " ";
  }
  return text;
}

TEST(EveryDemo, ClaimsOfAHotShardOnlyWhatItsFiguresShow) {
  const std::string even = "shards/ps:sync sharding=balanced/samples_per_second";
  const std::string async_even = "shards/ps:async sharding=balanced/samples_per_second";
  EXPECT_THAT(
      answer_by("hot-shard", {{even, 3}, {async_even, 2}, {"hot/parts/hot shard/ms", 5}, {"hot/measured_ms", 9}}),
      AllOf(HasSubstr("5 ms go to waiting for that server"), HasSubstr("Async does not escape"),
            HasSubstr("divides it among all")));
  EXPECT_THAT(answer_by("hot-shard", {{"hot/parts/hot shard/ms", 0}}),
              AllOf(HasSubstr("less than a fifth lies between them"), HasSubstr("less than a hundredth goes"),
                    HasSubstr("Async suffers less"), testing::Not(HasSubstr("Cutting tensors"))));
}

TEST(EveryDemo, SaysThatAStragglerCostsAccuracyOnlyWhereItDid) {
  const std::string ring = "speed/allreduce:ring straggler=3:4x/quality",
                    async = "speed/ps:async straggler=3:4x/quality";
  EXPECT_THAT(answer_by("straggler", {{ring, 0.868}, {async, 0.84}}),
              AllOf(HasSubstr("It pays with accuracy: 84"), testing::Not(HasSubstr("does not pay"))));
  EXPECT_THAT(answer_by("straggler", {{ring, 0.868}, {async, 0.862}}),
              HasSubstr("It does not pay for that with accuracy"));
}

TEST(EveryDemo, HoldsHorovodsVggAgainstWhatWasPublished) {
  const std::string step = "vgg/allreduce:ring shape=20gbit+50us/step_split_ms/step";
  EXPECT_THAT(answer_by("horovod", {{"vgg-why/ideal_ms", 74}, {step, 100}}),
              HasSubstr("VGG-16 lies 5 points below what was published"));
  EXPECT_THAT(answer_by("horovod", {{"vgg-why/ideal_ms", 85}, {step, 100}}), HasSubstr("6 points above"));
  EXPECT_THAT(answer_by("horovod", {{"vgg-why/ideal_ms", 79.4}, {step, 100}}), HasSubstr("where it was published"));
}

TEST(EveryDemo, SaysThatAsyncTookLongerAfterADeathOnlyWhereItDid) {
  const std::string sync = "sync/faults/0/seconds_to_all_steps", async = "async/faults/0/seconds_to_all_steps";
  EXPECT_THAT(answer_by("death", {{sync, 0.05}, {async, 0.002}}),
              AllOf(HasSubstr("50.0 ms went by under ps:sync and 2.0 ms"), testing::Not(HasSubstr("took longer"))));
  EXPECT_THAT(answer_by("death", {{sync, 0.002}, {async, 0.05}}),
              HasSubstr("That async took longer here may be chance"));
}

TEST(DemoFile, IsReadWhole) {
  const Result<Demo> demo = read_demo("small", kSmallDemo);
  ASSERT_TRUE(demo.ok()) << demo.status().message();
  EXPECT_EQ(demo->question, "How much faster is it with two servers?") << "two lines are one text";
  EXPECT_THAT(demo->runs, SizeIs(1));
  EXPECT_EQ(demo->runs.front().words.front(), "study");
  EXPECT_THAT(demo->exercises, SizeIs(3));
  EXPECT_DOUBLE_EQ(demo->exercises[0].tolerance, 0.02);
  EXPECT_THAT(question_text(*demo, 80),
              AllOf(HasSubstr("small: Do servers help?"), HasSubstr("b: twice as fast"),
                    HasSubstr("about 5 s, simulated cluster"), HasSubstr("run_experiment study")));
}

TEST(DemoFile, SaysWhatIsWrongInIt) {
  const auto without = [](const std::string& begin) {
    std::string text;
    for (const std::string& line : lines_of_small_demo()) {
      if (!line.starts_with(begin)) text += line + "\n";
    }
    return read_demo("small", text).status().message();
  };
  EXPECT_THAT(without("title"), HasSubstr("has no title"));
  EXPECT_THAT(without("run."), HasSubstr("has no run"));
  EXPECT_THAT(without("exercise.3"), HasSubstr("has 2 exercises; a demonstration has 3"));
  EXPECT_THAT(without("plot.1.x-label"), HasSubstr("has no plot.1.x-label"));
  const auto with = [](const std::string& line) { return read_demo("small", kSmallDemo + line).status().message(); };
  EXPECT_THAT(with("colour = \"red\"\n"), HasSubstr("colour: no such key"));
  EXPECT_THAT(with("say.9.if = \"1\"\n"), HasSubstr("needs say.9.then or say.9.else beside say.9.if"));
  EXPECT_THAT(with("run.A = \"x\"\n"), HasSubstr("must have small letters and dashes alone"));
  EXPECT_THAT(with("why.x = \"nobody\"\n"), HasSubstr("must be RUN or RUN/ROW of a run above"));
  EXPECT_THAT(open_demo("stragler").status().message(), HasSubstr("did you mean straggler?"));
  EXPECT_THAT(open_demo("no-such.toml").status().message(), HasSubstr("demo no-such.toml"));
}

}  // namespace
}  // namespace syncopate::experiments
