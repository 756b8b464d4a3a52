#include "experiments/lab/report/comparison_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "common/text/list_text.h"
#include "experiments/cluster/control/figure_text.h"
#include "experiments/lab/report/enough_rounds.h"
#include "experiments/lab/report/learning_words.h"

namespace syncopate::experiments {
namespace {

// The rows that have a rate, the one with the most samples/s first.
std::vector<std::size_t> by_rate(const ComparisonFigures& figures) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < figures.rows.size(); ++row) {
    if (figures.rows[row].samples_per_second.mean > 0) rows.push_back(row);
  }
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [&](std::size_t row) { return figures.rows[row].samples_per_second.mean; });
  return rows;
}

// Returns how many rows are as fast as the first, in figures without noise.
std::size_t alike_at_the_front(const ComparisonFigures& figures, const std::vector<std::size_t>& rows) {
  const auto rate = [&](std::size_t row) { return figures.rows[row].samples_per_second.mean; };
  return static_cast<std::size_t>(std::ranges::count_if(
      rows, [&](std::size_t row) { return rate(row) >= (1 - kExactlyAlike) * rate(rows.front()); }));
}

// Answers from figures without noise, of which the first `alike` rows are alike.
std::string exact_answer(const ComparisonReport& report, const ComparisonFigures& figures,
                         const std::vector<std::size_t>& rows, std::size_t alike) {
  const auto rate = [&](std::size_t row) { return figures.rows[row].samples_per_second.mean; };
  if (alike > 1) {
    std::vector<std::string> labels;
    for (std::size_t i = 0; i < alike; ++i) labels.push_back(report.rows[rows[i]].label);
    return fmt::format("Answer: in this simulation {} are equally fast, within {:g} %.", list_text(labels, "and"),
                       100 * kExactlyAlike);
  }
  return fmt::format("Answer: {} is the fastest in this simulation; {} comes next, with {:.3g} % fewer samples/s.",
                     report.rows[rows.front()].label, report.rows[rows[1]].label,
                     100 * (1 - rate(rows[1]) / rate(rows.front())));
}

// Holds every row against the fastest one, whatever the table's baseline is.
std::string judged_answer(const ComparisonReport& report, const ComparisonFigures& figures,
                          const std::vector<std::size_t>& rows) {
  std::vector<Series> against;
  for (const std::size_t row : rows) against.push_back(throughput_series(report.rows[row]));
  const std::vector<Difference> judged = ratios(against, {.analyses = report.analyses});
  std::vector<std::string> alike, unjudged;
  bool all_within = true;  // the margin, of those alike
  std::size_t next = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::string& label = report.rows[rows[i]].label;
    if (judged[i].verdict == Verdict::kNotJudged) {
      unjudged.push_back(label);
    } else {
      if (judged[i].verdict != Verdict::kLower) {
        alike.push_back(label);
        all_within = all_within && is_within(judged[i], report.margin);
      }
      if (next == 0 || judged[i].estimate > judged[next].estimate) next = i;
    }
  }
  const std::string& fastest = report.rows[rows.front()].label;
  std::string text;
  if (next == 0) {
    text = fmt::format("Answer: {} had the most samples/s", fastest);
  } else if (!alike.empty() && all_within) {
    alike.insert(alike.begin(), fastest);
    text = fmt::format("Answer: {} are {}equally fast, within {:g} %", list_text(alike, "and"),
                       alike.size() < rows.size() ? "the fastest, and " : "", 100 * report.margin);
  } else if (!alike.empty()) {
    text = fmt::format("Answer: {} had the most samples/s, but no difference is shown from {}", fastest,
                       list_text(alike, "and"));
  } else {
    const Interval& lead = *judged[next].interval;
    text = fmt::format("Answer: {} is the fastest{}: {} comes next, with {:.4g} to {:.4g} % fewer samples/s", fastest,
                       unjudged.empty() ? "" : " of those judged", report.rows[rows[next]].label, 100 * (1 - lead.high),
                       100 * (1 - lead.low));
  }
  text += fmt::format(", over {} rounds", figures.most_rounds);
  if (!unjudged.empty()) text += fmt::format("; not judged, for too few rounds: {}", list_text(unjudged, "and"));
  return text + ".";
}

// One round's test set must leave less than this many standard errors to chance.
constexpr double kBeyondChance = 3;

// Whether the row's quality is below `best`'s, by more than the test set explains: what the rounds that both have show
// where they are too few to be judged. Other seeds may differ by more.
bool is_below(const ComparedRow& row, const ComparedRow& best) {
  double difference = 0, variance = 0;
  std::size_t pairs = 0;
  for (std::size_t round = 0; round < std::min(row.rounds.size(), best.rounds.size()); ++round) {
    if (!row.rounds[round] || !best.rounds[round]) continue;
    const RunReport &own = *row.rounds[round], &other = *best.rounds[round];
    const std::optional<double> error = sampling_error(own), error_of_best = sampling_error(other);
    if (!error || !error_of_best) continue;
    difference += *final_headline(other) - *final_headline(own);
    variance += *error * *error + *error_of_best * *error_of_best;
    ++pairs;
  }
  return pairs > 0 && difference > kBeyondChance * std::sqrt(variance);
}

struct Learning {
  std::size_t best = 0;            // the row of the best quality
  std::vector<std::size_t> worse;  // rows that are shown to have learnt worse than that
  bool is_judged = false;          // by rounds, in all of these
};

Learning learning_of(const ComparisonReport& report, const ComparisonFigures& figures) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < figures.rows.size(); ++row) {
    if (figures.rows[row].quality.count > 0) rows.push_back(row);
  }
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [&](std::size_t row) { return figures.rows[row].quality.mean; });
  if (rows.empty()) return {};
  Learning learning{.best = rows.front(), .is_judged = true};
  std::vector<Series> series;
  for (const std::size_t row : rows) series.push_back(quality_series(report.rows[row]));
  const std::vector<Difference> judged = differences(series, {.rounds = Rounds::kIndependent});
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const bool by_rounds = report.in_rounds && judged[i].verdict != Verdict::kNotJudged;
    if (by_rounds ? judged[i].verdict != Verdict::kLower
                  : !is_below(report.rows[rows[i]], report.rows[learning.best])) {
      continue;
    }
    learning.worse.push_back(rows[i]);
    learning.is_judged = learning.is_judged && by_rounds;
  }
  return learning;
}

// Says which of the `named` rows, all of `rows` that the answer calls fastest, learnt worse than another, and which is
// then the fastest; empty: nothing shows it of any.
std::string learning_answer(const ComparisonReport& report, const ComparisonFigures& figures,
                            const std::vector<std::size_t>& rows, std::size_t named) {
  const Learning learning = learning_of(report, figures);
  const auto is_worse = [&](std::size_t row) { return std::ranges::find(learning.worse, row) != learning.worse.end(); };
  const auto quality = [&](std::size_t row) { return figure_text(figures.rows[row].quality.mean); };
  std::vector<std::string> labels, values;
  for (std::size_t i = 0; i < named; ++i) {
    if (!is_worse(rows[i])) continue;
    labels.push_back(report.rows[rows[i]].label);
    values.push_back(quality(rows[i]));
  }
  if (labels.empty()) return "";
  std::string text =
      fmt::format(" But {} learnt worse than {}: {} {} against {} at the end, {}.", list_text(labels, "and"),
                  report.rows[learning.best].label, figures.quality, list_text(values, "and"), quality(learning.best),
                  learning.is_judged ? "beyond the noise of the rounds"
                                     : "more than the size of the test set explains (other seeds may differ)");
  const auto fastest = std::ranges::find_if_not(rows, is_worse);
  if (fastest == rows.end()) return text;
  return text + fmt::format(" Of the rows that are not shown to have learnt worse, {} had the most samples/s.",
                            report.rows[*fastest].label);
}

}  // namespace

std::string answer_line(const ComparisonReport& report, const ComparisonFigures& figures) {
  const std::vector<std::size_t> rows = by_rate(figures);
  if (rows.size() < 2) return "";
  std::size_t named = 1;
  const std::string most = fmt::format("Answer: {} had the most samples/s", report.rows[rows.front()].label);
  std::string text;
  if (!report.in_rounds) {
    text = most + ", in runs that did not take turns: it need not be the fastest.";
  } else if (figures.is_exact) {
    named = alike_at_the_front(figures, rows);
    text = exact_answer(report, figures, rows, named);
  } else if (figures.most_rounds >= kFewestRounds) {
    text = judged_answer(report, figures, rows);
  } else {
    text = fmt::format("{} in {} round{}{}, too few to say that it is the fastest.", most, figures.most_rounds,
                       figures.most_rounds == 1 ? "" : "s", report.simulated ? " of this simulation" : "");
  }
  return text + learning_answer(report, figures, rows, named);
}

}  // namespace syncopate::experiments
