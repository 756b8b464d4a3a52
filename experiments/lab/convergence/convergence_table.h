// What others have published about how training converges, beside runs of ours, in kind: who learns, who falls short,
// who collapses. Nothing is compared figure by figure, since data and models differ. Pure.
//
// A setting's kind follows from how far it comes on the way from chance to its table's reference, a synchronous run of
// the same workers, by the same rule on both sides.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace syncopate::experiments {

enum class Convergence {
  kLearns,      // nine tenths of the way or more
  kFallsShort,  // between the two
  kCollapses,   // less than a third of the way
};

const char* name_of(Convergence value);  // "learns", "falls short", "collapses"

// Accuracies are parts of one, of ten classes; `reference` must be above a tenth, which is chance.
Convergence convergence_of(double accuracy, double reference);

// A figure as its source has it.
struct PublishedConvergence {
  std::string text;                // "10.00", "90 (fails)"
  std::optional<double> accuracy;  // a part of one; none where the source has words alone
  Convergence kind = Convergence::kLearns;
};

struct ConvergenceSetting {
  std::string name;    // "async, labels, 10 workers"
  std::string series;  // of the chart: "async, labels"
  double x = 0;        // its place in the chart
  std::vector<PublishedConvergence> published;
  std::vector<std::string> flags;  // of our run, all but seed, repeats and output
  std::size_t reference = 0;       // the setting of its table that it is held against
};

// One claim of one source.
struct ConvergenceTable {
  std::string name;      // "softsync"
  std::string what;      // what was published, in one sentence
  std::string source;    // by whom
  std::string unit;      // of published figures: "test error, %"
  std::string x_label;   // of the chart
  std::string ours;      // what ours trains, in one sentence
  std::string left_out;  // what the source has besides, and why it has no row; empty for nothing
  std::vector<ConvergenceSetting> settings;
};

// What runs of a setting came to.
struct MeasuredConvergence {
  std::vector<double> accuracies;  // on the test set at the end, by seed; one at least
  double staleness = 0;            // updates, mean over seeds
};

struct ReproducedConvergence {
  ConvergenceTable table;
  std::vector<MeasuredConvergence> measured;  // of its settings, in their order
};

// A measured setting's accuracies, its kind by seed, and how many seeds are of a kind that its source has.
struct ConvergenceVerdict {
  double mean = 0, least = 0, most = 0;
  std::vector<Convergence> kinds;
  std::size_t agreeing = 0;

  bool reproduced() const { return agreeing == kinds.size(); }
};

ConvergenceVerdict verdict_of(const ReproducedConvergence& reproduced, std::size_t setting);

// Returns "reproduced", "not reproduced", or "with 2 of 3 seeds".
std::string text_of(const ConvergenceVerdict& verdict);

// Returns the kinds by name, each once, in the order of Convergence: "falls short, collapses".
std::string kinds_text(std::span<const Convergence> kinds);

}  // namespace syncopate::experiments
