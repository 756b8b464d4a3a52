// Demo: a demonstration, which asks a question, has runs answer it, and sets exercises over their figures. Those in
// demos/*.toml are in the program; `demo FILE.toml` takes a person's own. docs/demonstrations.md says how to write one.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"

namespace syncopate::experiments {

// demos/*.toml, by name without the ending.
const std::map<std::string_view, std::string_view>& demo_texts();

// A line of run_experiment whose results have a name.
struct DemoRun {
  std::string name;
  std::vector<std::string> words;  // behind run_experiment, without --output
};
bool compares(const DemoRun& run);  // whether it is a comparison or a study, and leaves comparison.json

// What `why` says of one run: a single run of the demonstration, or a row of a comparison.
struct DemoWhy {
  std::string name;
  std::string run, row;  // the row is empty for a single run
};

struct DemoPlot {
  enum class Kind {
    kLines,   // y over a varied option x: a line for each mode and for each combination of the other options
    kCurves,  // test accuracy over the seconds of training: a line for each row whose label begins with `rows`
    kBars,    // a bar for each formula
  };
  Kind kind = Kind::kLines;
  std::string title;
  std::string run, x, y;         // lines: y is the rest of a path behind the row; curves: the run alone
  std::string x_label, y_label;  // with units; bars: y_label
  std::string rows;              // curves: empty for all
  double factor = 1;             // of y
  bool x_logarithmic = false, y_logarithmic = false;
  std::vector<std::pair<std::string, std::string>> bars;  // name and formula
};

// A choice of the question. Whether it is the right one is for the figures to say.
struct DemoChoice {
  std::string letter, text;
  std::string condition;  // a formula
};

// A sentence of the answer, in which formulas in braces stand for figures; by a condition, where there is one.
struct DemoSentence {
  std::string condition;        // a formula; empty: always `text`
  std::string text, otherwise;  // empty: nothing is said then
};

struct DemoExercise {
  std::string text;
  std::string key;     // in the file of answers
  std::string answer;  // a formula: a number, or a text
  std::string hint;
  double tolerance = 0;  // of a number: as a part of it
};

struct Demo {
  std::string name;
  std::string title;     // "the server's link is full"
  std::string question;  // asked before anything runs
  std::vector<DemoChoice> choices;
  bool is_real = false;  // real processes; otherwise a simulated cluster
  int seconds = 0;       // about how long it takes on two cores
  int place = 0;         // in the list
  std::vector<DemoRun> runs;
  std::vector<DemoWhy> whys;
  std::map<std::string, std::string> figures;  // name and formula
  std::vector<DemoPlot> plots;
  std::string look;  // where to look in the plots: questions, which claim nothing
  std::vector<DemoSentence> answer;
  std::vector<DemoExercise> exercises;
};

// Returns a demonstration by its name, or from a file whose name ends in .toml. Fails with invalid argument for an
// unknown name, listing all, and for a file that cannot be read or is none, naming what is wrong in it.
Result<Demo> open_demo(const std::string& name_or_file);

// Reads a demonstration's file. Fails with invalid argument.
Result<Demo> read_demo(const std::string& name, std::string_view toml);

}  // namespace syncopate::experiments
