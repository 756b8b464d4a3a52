#include "experiments/lab/demo/demo.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>

#include "common/os/regular_file.h"
#include "common/text/nearest_name.h"
#include "common/text/number.h"
#include "experiments/config/toml.h"

namespace syncopate::experiments {
namespace {

constexpr std::uint64_t kMostDemoBytes = 1 << 18;
constexpr int kExercises = 3;

// The lines of a demonstration's file, which are taken out as they are understood: what is left is unknown.
class DemoFile {
 public:
  explicit DemoFile(std::vector<std::pair<std::string, std::string>> entries) : entries_(std::move(entries)) {}

  // Returns the value of `key`, or those of key.1, key.2 and so on as one text; none if there is neither.
  std::optional<std::string> take(const std::string& key) {
    if (std::optional<std::string> one = take_line(key)) return one;
    std::optional<std::string> all;
    for (int number = 1;; ++number) {
      const std::optional<std::string> line = take_line(fmt::format("{}.{}", key, number));
      if (!line) return all;
      all = all ? *all + " " + *line : *line;
    }
  }

  Result<std::string> need(const std::string& key) {
    if (std::optional<std::string> value = take(key)) return *value;
    return Status::invalid_argument(fmt::format("has no {}", key));
  }

  // Returns what stands between `prefix` and the next dot in each key that begins so, in order, each once.
  std::vector<std::string> names_below(const std::string& prefix) const {
    std::vector<std::string> names;
    for (const auto& [key, value] : entries_) {
      if (!key.starts_with(prefix)) continue;
      std::string name = key.substr(prefix.size());
      name = name.substr(0, name.find('.'));
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    }
    return names;
  }

  const std::vector<std::pair<std::string, std::string>>& left() const { return entries_; }

 private:
  std::optional<std::string> take_line(const std::string& key) {
    const auto found = std::ranges::find(entries_, key, &std::pair<std::string, std::string>::first);
    if (found == entries_.end()) return std::nullopt;
    std::string value = std::move(found->second);
    entries_.erase(found);
    return value;
  }

  std::vector<std::pair<std::string, std::string>> entries_;
};

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool is_folder_name(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
}

Result<DemoPlot::Kind> kind_of(const std::string& text) {
  if (text == "lines") return DemoPlot::Kind::kLines;
  if (text == "curves") return DemoPlot::Kind::kCurves;
  if (text == "bars") return DemoPlot::Kind::kBars;
  return Status::invalid_argument(fmt::format("kind = {}: must be lines, curves or bars", text));
}

Result<double> number_of(const std::string& key, const std::string& text, double least, double most) {
  const std::optional<double> number = parse_number<double>(text);
  if (number && *number >= least && *number <= most) return *number;
  return Status::invalid_argument(fmt::format("{} = {}: must be {:g} to {:g}", key, text, least, most));
}

Result<DemoPlot> take_plot(DemoFile& file, const std::string& prefix) {
  DemoPlot plot;
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string kind, file.need(prefix + "kind"));
  SYNCOPATE_ASSIGN_OR_RETURN(plot.kind, kind_of(kind));
  SYNCOPATE_ASSIGN_OR_RETURN(plot.title, file.need(prefix + "title"));
  if (plot.kind != DemoPlot::Kind::kCurves) {
    SYNCOPATE_ASSIGN_OR_RETURN(plot.y_label, file.need(prefix + "y-label"));
  }
  if (plot.kind != DemoPlot::Kind::kBars) {
    SYNCOPATE_ASSIGN_OR_RETURN(plot.run, file.need(prefix + "run"));
  }
  if (plot.kind == DemoPlot::Kind::kLines) {
    SYNCOPATE_ASSIGN_OR_RETURN(plot.x, file.need(prefix + "x"));
    SYNCOPATE_ASSIGN_OR_RETURN(plot.y, file.need(prefix + "y"));
    SYNCOPATE_ASSIGN_OR_RETURN(plot.x_label, file.need(prefix + "x-label"));
    plot.x_logarithmic = file.take(prefix + "x-scale") == "log";
    plot.y_logarithmic = file.take(prefix + "y-scale") == "log";
    if (const auto factor = file.take(prefix + "factor")) {
      SYNCOPATE_ASSIGN_OR_RETURN(plot.factor, number_of(prefix + "factor", *factor, 1e-12, 1e12));
    }
  }
  if (plot.kind == DemoPlot::Kind::kCurves) plot.rows = file.take(prefix + "rows").value_or("");
  for (const std::string& number : file.names_below(prefix + "bar.")) {
    SYNCOPATE_ASSIGN_OR_RETURN(std::string name, file.need(fmt::format("{}bar.{}.name", prefix, number)));
    SYNCOPATE_ASSIGN_OR_RETURN(std::string value, file.need(fmt::format("{}bar.{}.value", prefix, number)));
    plot.bars.emplace_back(std::move(name), std::move(value));
  }
  if ((plot.kind == DemoPlot::Kind::kBars) == plot.bars.empty()) {
    return Status::invalid_argument(prefix + "bar: bars have at least one, and nothing else has any");
  }
  return plot;
}

Result<DemoSentence> take_sentence(DemoFile& file, const std::string& key) {
  DemoSentence sentence;
  if (const auto condition = file.take(key + ".if")) {
    sentence.condition = *condition;
    sentence.text = file.take(key + ".then").value_or("");
    sentence.otherwise = file.take(key + ".else").value_or("");
    if (sentence.text.empty() && sentence.otherwise.empty()) {
      return Status::invalid_argument(fmt::format("{0}: needs {0}.then or {0}.else beside {0}.if", key));
    }
    return sentence;
  }
  SYNCOPATE_ASSIGN_OR_RETURN(sentence.text, file.need(key));
  return sentence;
}

Result<DemoExercise> take_exercise(DemoFile& file, const std::string& prefix) {
  DemoExercise exercise;
  SYNCOPATE_ASSIGN_OR_RETURN(exercise.text, file.need(prefix + "text"));
  SYNCOPATE_ASSIGN_OR_RETURN(exercise.key, file.need(prefix + "key"));
  SYNCOPATE_ASSIGN_OR_RETURN(exercise.answer, file.need(prefix + "answer"));
  SYNCOPATE_ASSIGN_OR_RETURN(exercise.hint, file.need(prefix + "hint"));
  if (const auto tolerance = file.take(prefix + "tolerance")) {
    SYNCOPATE_ASSIGN_OR_RETURN(exercise.tolerance, number_of(prefix + "tolerance", *tolerance, 0, 1));
  }
  return exercise;
}

Status take_runs(DemoFile& file, Demo& demo) {
  for (const std::string& name : file.names_below("run.")) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string line, file.need("run." + name));
    demo.runs.push_back({name, words_of(line)});
    if (!is_folder_name(name)) {
      return Status::invalid_argument(fmt::format("run.{}: the name must have small letters and dashes alone", name));
    }
  }
  if (demo.runs.empty()) return Status::invalid_argument("has no run; give at least one, as in run.speed = \"...\"");
  for (const std::string& name : file.names_below("why.")) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::string of, file.need("why." + name));
    const std::size_t slash = of.find('/');
    DemoWhy why{name, of.substr(0, slash), slash == std::string::npos ? "" : of.substr(slash + 1)};
    const auto is_run = std::ranges::find(demo.runs, why.run, &DemoRun::name);
    if (is_run == demo.runs.end() || !is_folder_name(name)) {
      return Status::invalid_argument(fmt::format("why.{} = {}: must be RUN or RUN/ROW of a run above", name, of));
    }
    demo.whys.push_back(std::move(why));
  }
  return {};
}

Result<Demo> take_demo(const std::string& name, DemoFile& file) {
  Demo demo{.name = name};
  SYNCOPATE_ASSIGN_OR_RETURN(demo.title, file.need("title"));
  SYNCOPATE_ASSIGN_OR_RETURN(demo.question, file.need("question"));
  SYNCOPATE_ASSIGN_OR_RETURN(demo.look, file.need("look"));
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string cluster, file.need("cluster"));
  if (cluster != "real" && cluster != "simulated") {
    return Status::invalid_argument(fmt::format("cluster = {}: must be real or simulated", cluster));
  }
  demo.is_real = cluster == "real";
  SYNCOPATE_ASSIGN_OR_RETURN(const std::string seconds, file.need("seconds"));
  SYNCOPATE_ASSIGN_OR_RETURN(const double about, number_of("seconds", seconds, 1, 3600));
  demo.seconds = static_cast<int>(about);
  if (const auto place = file.take("place")) {
    SYNCOPATE_ASSIGN_OR_RETURN(const double number, number_of("place", *place, 1, 1000));
    demo.place = static_cast<int>(number);
  }
  for (const std::string& letter : file.names_below("choice.")) {
    DemoChoice choice{.letter = letter};
    SYNCOPATE_ASSIGN_OR_RETURN(choice.condition, file.need(fmt::format("choice.{}.if", letter)));
    SYNCOPATE_ASSIGN_OR_RETURN(choice.text, file.need("choice." + letter));
    demo.choices.push_back(std::move(choice));
  }
  SYNCOPATE_RETURN_IF_ERROR(take_runs(file, demo));
  for (const std::string& figure : file.names_below("figure.")) {
    SYNCOPATE_ASSIGN_OR_RETURN(demo.figures[figure], file.need("figure." + figure));
  }
  for (const std::string& number : file.names_below("plot.")) {
    SYNCOPATE_ASSIGN_OR_RETURN(DemoPlot plot, take_plot(file, fmt::format("plot.{}.", number)));
    demo.plots.push_back(std::move(plot));
  }
  for (const std::string& number : file.names_below("say.")) {
    SYNCOPATE_ASSIGN_OR_RETURN(DemoSentence sentence, take_sentence(file, "say." + number));
    demo.answer.push_back(std::move(sentence));
  }
  for (const std::string& number : file.names_below("exercise.")) {
    SYNCOPATE_ASSIGN_OR_RETURN(DemoExercise exercise, take_exercise(file, fmt::format("exercise.{}.", number)));
    demo.exercises.push_back(std::move(exercise));
  }
  if (demo.plots.empty() || demo.answer.empty()) return Status::invalid_argument("needs plot.1 and say.1 at least");
  if (demo.exercises.size() != kExercises) {
    return Status::invalid_argument(
        fmt::format("has {} exercises; a demonstration has {}", demo.exercises.size(), kExercises));
  }
  if (!file.left().empty()) return Status::invalid_argument(fmt::format("{}: no such key", file.left().front().first));
  return demo;
}

std::vector<std::string> known_demos() {
  std::vector<std::string> names;
  for (const auto& [name, text] : demo_texts()) names.emplace_back(name);
  return names;
}

}  // namespace

bool compares(const DemoRun& run) {
  return !run.words.empty() && (run.words.front() == "compare" || run.words.front() == "study");
}

Result<Demo> read_demo(const std::string& name, std::string_view toml) {
  SYNCOPATE_ASSIGN_OR_RETURN(auto entries, read_toml(toml));
  DemoFile file(std::move(entries));
  return take_demo(name, file);
}

Result<Demo> open_demo(const std::string& name_or_file) {
  if (name_or_file.ends_with(".toml")) {
    const Result<std::string> text = read_input(name_or_file, kMostDemoBytes);
    if (!text.ok()) return Status::invalid_argument("demo " + text.status().message());
    Result<Demo> demo = read_demo(std::filesystem::path(name_or_file).stem().string(), *text);
    if (!demo.ok()) return demo.status().in("demo " + name_or_file);
    return demo;
  }
  const auto found = demo_texts().find(name_or_file);
  if (found != demo_texts().end()) return read_demo(name_or_file, found->second);
  const std::string nearest = nearest_name(name_or_file, known_demos());
  return Status::invalid_argument(
      fmt::format("demo {}: no such demonstration; there are {}, or a file that ends in .toml{}", name_or_file,
                  fmt::join(known_demos(), ", "), nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)));
}

}  // namespace syncopate::experiments
