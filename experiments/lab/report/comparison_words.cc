#include "experiments/lab/report/comparison_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "experiments/lab/report/comparison_answer.h"
#include "experiments/lab/report/enough_rounds.h"
#include "experiments/lab/report/machine_state.h"
#include "experiments/lab/report/steadiness.h"

namespace syncopate::experiments {
namespace {

std::string judged_line(const ComparisonReport& report, const ComparisonFigures& figures) {
  if (!report.in_rounds) return "Not judged: finished runs did not run in turns, so no round pairs them.";
  if (figures.is_exact) {
    return fmt::format(
        "Judged as exact: this simulation draws nothing that moves its times, so that every round gives them anew. "
        "Rows "
        "within {:g} % of the first are called no different.",
        100 * kExactlyAlike);
  }
  if (report.simulated && figures.most_rounds == 1) {
    return "Not judged: 1 round; from 2 on (--repeat=2) it shows whether the simulation draws anything, and if not, it "
           "is judged.";
  }
  if (figures.most_rounds < kFewestRounds && report.analyses > 1) {
    return fmt::format("Not judged: {} round{} in the time that was given, and verdicts begin at {}.",
                       figures.most_rounds, figures.most_rounds == 1 ? "" : "s", kFewestRounds);
  }
  if (figures.most_rounds < kFewestRounds) {
    return fmt::format(
        "Not judged: {} round{}; from {} on there are intervals and verdicts, and {} (--repeat={}) show smaller "
        "differences.",
        figures.most_rounds, figures.most_rounds == 1 ? "" : "s", kFewestRounds, 3 * kFewestRounds, 3 * kFewestRounds);
  }
  return fmt::format(
      "Judged by differences within a round (t of logarithms, {}Holm over the rows), whose rounds may be alike: of "
      "comparisons of equal rows, at most 1 in 20 calls any different. A difference is claimed only where 1 lies "
      "outside the interval.{}",
      figures.most_rounds >= 10 ? "a tenth trimmed at each end, " : "",
      report.analyses > 1
          ? fmt::format(" That holds over all looks, after {} rounds at most (Pocock).", fmt::join(kAnalyses, ", "))
          : "");
}

// Says where rounds of a row are very much alike, which widens the intervals, and beyond which they no longer hold.
std::string alike_line(const ComparisonReport& report, const ComparisonFigures& figures) {
  constexpr double kMuchAlike = 0.5, kTooMuchAlike = 0.8;
  if (figures.is_exact || figures.rows.empty()) return "";
  std::size_t most = 0;
  for (std::size_t row = 0; row < figures.rows.size(); ++row) {
    if (figures.rows[row].speed.autocorrelation > figures.rows[most].speed.autocorrelation) most = row;
  }
  const double alike = figures.rows[most].speed.autocorrelation;
  if (alike < kMuchAlike) return "";
  return fmt::format(
      "{}Successive rounds are alike, as where a machine is now slow, now fast for one row: of {} their "
      "autocorrelation "
      "is most likely {:.2g}, which few rounds may show by chance, too. {}",
      alike > kTooMuchAlike ? "beware: " : "", report.rows[most].label, alike,
      alike > kTooMuchAlike ? "Beyond 0.7 a difference can be claimed by chance in more than 1 in 20 comparisons."
                            : "It widens the intervals; more rounds narrow them.");
}

// Returns the explanations of the columns.
std::vector<std::string> column_lines(const ComparisonReport& report, const ComparisonFigures& figures) {
  if (figures.most_rounds == 0) return {};
  std::vector<std::string> lines = {
      "Whole job: samples that the weights have learnt from, over the seconds from the first step's beginning to the "
      "last "
      "step's end. Window: where all workers train at once, after the warm-up. ms/step: of the median step; wait, MB "
      "(sent "
      "and received), staleness: of the mean step.",
      "A/A noise: median difference between successive rounds of one row. Rate a pass: learning rate x its updates in "
      "one "
      "pass of the training set."};
  if (report.target > 0) {
    lines.emplace_back(
        "Seconds to the target are of the rounds that reached it; resolution: how far apart the evaluations around it "
        "lie.");
  }
  return lines;
}

// Returns one line for each kind of trouble: the worst run's, and how many runs had it.
std::vector<std::string> machine_lines(const ComparisonReport& report) {
  struct Trouble {
    MachineTrouble worst;
    std::string label;
    std::size_t round = 0, runs = 0;
  };
  std::vector<Trouble> troubles;
  std::size_t runs = 0;
  for (const ComparedRow& row : report.rows) {
    for (std::size_t round = 0; round < row.rounds.size(); ++round) {
      if (!row.rounds[round] || !row.rounds[round]->machine) continue;
      ++runs;
      for (const MachineTrouble& trouble : troubles_of(*row.rounds[round]->machine)) {
        auto same = std::ranges::find_if(troubles, [&](const auto& one) { return one.worst.kind == trouble.kind; });
        if (same == troubles.end()) same = troubles.insert(troubles.end(), {trouble, row.label, round, 0});
        if (trouble.size > same->worst.size) same->worst = trouble, same->label = row.label, same->round = round;
        ++same->runs;
      }
    }
  }
  std::vector<std::string> lines;
  for (const Trouble& trouble : troubles) {
    lines.push_back(fmt::format("In {} of {} runs, at worst in {}, round {}: {}", trouble.runs, runs, trouble.label,
                                trouble.round + 1, trouble.worst.text));
  }
  return lines;
}

}  // namespace

std::string words_of(Verdict verdict, const std::string& higher, const std::string& lower) {
  switch (verdict) {
    case Verdict::kHigher:
      return higher;
    case Verdict::kLower:
      return lower;
    case Verdict::kNoDifferenceShown:
      return "no difference shown";
    case Verdict::kNotJudged:
      break;
  }
  return "not judged";
}

std::vector<std::string> caveats(const ComparisonReport& report, const ComparisonFigures& figures) {
  std::vector<std::string> lines = column_lines(report, figures);
  lines.push_back(judged_line(report, figures));
  if (const std::optional<Drift> drift = drift_of(report)) {
    lines.push_back(fmt::format(
        "The machine drifted: over {} rounds all rows became {:.2g} % {} from one to the next (by chance in {:.1g} of "
        "cases). Ratios, taken within rounds, hardly feel that; samples/s do.",
        drift->rounds, 100 * std::abs(drift->a_round - 1), drift->a_round < 1 ? "slower" : "faster", drift->p));
  }
  if (const std::string line = alike_line(report, figures); !line.empty()) lines.push_back(line);
  for (const std::string& line : machine_lines(report)) lines.push_back(line);
  for (const std::string& line : report.left_out) lines.push_back(line);
  for (const std::string& line : report.notes) lines.push_back(line);
  if (report.outcome != "completed") lines.push_back("Not completed: " + report.outcome);
  if (const std::string line = answer_line(report, figures); !line.empty()) lines.push_back(line);
  return lines;
}

}  // namespace syncopate::experiments
