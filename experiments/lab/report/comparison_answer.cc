#include "experiments/lab/report/comparison_answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "common/text/list_text.h"
#include "experiments/cluster/control/figure_text.h"
#include "experiments/lab/report/enough_rounds.h"
#include "experiments/lab/report/learning_words.h"

namespace syncopate::experiments {
namespace {

using Rows = std::vector<std::size_t>;

// The rows that have a rate, the one with the most samples/s first.
Rows by_rate(const ComparisonFigures& figures) {
  Rows rows;
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

Learning learning_of(const ComparisonReport& report, const ComparisonFigures& figures, Rows rows) {
  std::erase_if(rows, [&](std::size_t row) { return figures.rows[row].quality.count == 0; });
  std::ranges::sort(rows);
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
  const Learning learning = learning_of(report, figures, rows);
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

// The rows of one value of what is varied, the fastest first.
struct AtValue {
  std::string value;  // "workers=4", "workers=4 servers=2"
  Rows rows;
};

std::string value_of(const ComparedRow& row) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : row.values) parts.push_back(name + "=" + value);
  return fmt::format("{}", fmt::join(parts, " "));
}

// Divides rows by the values of what is varied, in the order of the table; empty where no value has several modes to
// choose from, or one has a mode twice.
std::vector<AtValue> by_value(const ComparisonReport& report, const Rows& rows) {
  std::vector<AtValue> all;
  for (const ComparedRow& row : report.rows) {
    if (std::ranges::find(all, value_of(row), &AtValue::value) == all.end()) all.push_back({value_of(row), {}});
  }
  for (const std::size_t row : rows) {
    std::ranges::find(all, value_of(report.rows[row]), &AtValue::value)->rows.push_back(row);
  }
  std::erase_if(all, [](const AtValue& one) { return one.rows.size() < 2; });
  const auto has_a_mode_twice = [&](const AtValue& one) {
    std::set<std::string> modes;
    return !std::ranges::all_of(one.rows, [&](std::size_t row) { return modes.insert(report.rows[row].mode).second; });
  };
  return std::ranges::any_of(all, has_a_mode_twice) || all.size() < 2 ? std::vector<AtValue>() : all;
}

// Those of which none is shown to be slower than the first; the first alone where there are too few rounds to show it.
Rows front_of(const ComparisonReport& report, const ComparisonFigures& figures, const Rows& rows) {
  if (figures.is_exact) {
    return {rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(alike_at_the_front(figures, rows))};
  }
  if (figures.most_rounds < kFewestRounds) return {rows.front()};
  std::vector<Series> against;
  for (const std::size_t row : rows) against.push_back(throughput_series(report.rows[row]));
  const std::vector<Difference> judged = ratios(against, {.analyses = report.analyses});
  Rows front = {rows.front()};
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (judged[i].verdict != Verdict::kLower) front.push_back(rows[i]);
  }
  return front;
}

// "workers=1, 2 and 4", or where several options are varied each value whole.
std::string values_text(std::vector<std::string> values) {
  const std::string name = values.front().substr(0, values.front().find('=') + 1);
  const auto is_plain = [&](const std::string& value) {
    return value.starts_with(name) && value.find(' ') == value.npos;
  };
  if (!std::ranges::all_of(values, is_plain)) return list_text(values, "and");
  for (std::string& value : values) value.erase(0, name.size());
  return name + list_text(values, "and");
}

// Says which mode is ahead at each value of what is varied: rows of unlike values are no choice.
std::string answer_by_value(const ComparisonReport& report, const ComparisonFigures& figures,
                            const std::vector<AtValue>& all) {
  const bool is_shown = figures.is_exact || figures.most_rounds >= kFewestRounds;
  std::vector<std::pair<std::string, std::vector<std::string>>> leads;  // what is said, and of which values
  std::string learning;
  for (const AtValue& one : all) {
    const Rows front = front_of(report, figures, one.rows);
    std::vector<std::string> modes;
    for (const std::size_t row : front) modes.push_back(report.rows[row].mode);
    const std::string lead = !is_shown           ? modes.front() + " had the most samples/s"
                             : front.size() == 1 ? modes.front() + " is the fastest"
                             : figures.is_exact  ? list_text(modes, "and") + " are equally fast"
                                                 : "no difference is shown between " + list_text(modes, "and");
    auto found = std::ranges::find(leads, lead, &std::pair<std::string, std::vector<std::string>>::first);
    if (found == leads.end()) found = leads.insert(leads.end(), {lead, {}});
    found->second.push_back(one.value);
    learning += learning_answer(report, figures, one.rows, front.size());
  }
  std::vector<std::string> parts;
  for (const auto& [lead, values] : leads) parts.push_back(fmt::format("{} at {}", lead, values_text(values)));
  const std::string rounds = fmt::format("{} round{}", figures.most_rounds, figures.most_rounds == 1 ? "" : "s");
  const std::string where = figures.is_exact ? "in this simulation" : (is_shown ? "over " : "in ") + rounds;
  return fmt::format("Answer: {} {}{}.", where, fmt::join(parts, "; "),
                     is_shown ? "" : ": too few rounds to say that one is the fastest") +
         learning;
}

}  // namespace

std::string answer_line(const ComparisonReport& report, const ComparisonFigures& figures) {
  const std::vector<std::size_t> rows = by_rate(figures);
  if (rows.size() < 2) return "";
  const std::vector<AtValue> values = report.in_rounds ? by_value(report, rows) : std::vector<AtValue>();
  if (!values.empty()) return answer_by_value(report, figures, values);
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
