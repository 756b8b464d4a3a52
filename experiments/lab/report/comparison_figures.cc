#include "experiments/lab/report/comparison_figures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "experiments/lab/report/machine_state.h"
#include "experiments/lab/report/statistics.h"
#include "experiments/lab/report/steadiness.h"

namespace syncopate::experiments {
namespace {

// Exact figures that lie no further apart are called alike.
constexpr double kAlike = 1e-3;

using RunFigure = std::function<std::optional<double>(const RunReport&)>;

Series series_of(const ComparedRow& row, const RunFigure& figure) {
  Series series;
  for (const std::optional<RunReport>& round : row.rounds) series.push_back(round ? figure(*round) : std::nullopt);
  return series;
}

std::optional<double> median_of(const ComparedRow& row, const RunFigure& figure) {
  std::vector<double> present;
  for (const std::optional<double>& value : series_of(row, figure)) {
    if (value) present.push_back(*value);
  }
  return present.empty() ? std::nullopt : std::optional(median(present));
}

std::optional<double> throughput(const RunReport& report) { return report.samples_per_second; }
std::optional<double> seconds_to_target(const RunReport& report) { return report.seconds_to_target; }

std::optional<double> quality(const RunReport& report) { return final_headline(report); }

// Returns what the server that has most receives and sends in a step of all workers.
std::optional<double> server_megabytes(const RunReport& report, int workers) {
  std::int64_t most = 0;
  for (const auto& [rank, server] : report.servers) most = std::max(most, server.bytes_in + server.bytes_out);
  if (most == 0 || workers == 0 || report.total_steps == 0) return std::nullopt;
  return static_cast<double>(most) / 1e6 * workers / static_cast<double>(report.total_steps);
}

RowFigures own_figures(const ComparedRow& row) {
  const auto any = [](double RunReport::*member, double factor) {
    return [member, factor](const RunReport& report) { return std::optional(report.*member * factor); };
  };
  RowFigures figures;
  figures.rounds = finished_rounds(row).size();
  figures.samples_per_second = estimate(series_of(row, throughput));
  figures.noise = noise_between_rounds(series_of(row, throughput));
  figures.training_seconds = estimate(series_of(row, any(&RunReport::training_seconds, 1)));
  figures.window_samples = median_of(row, [](const RunReport& report) {
    return report.window ? std::optional(report.window->samples_per_second) : std::nullopt;
  });
  figures.step_ms = median_of(row, any(&RunReport::step_ms_median, 1));
  figures.wait = median_of(row, [](const RunReport& report) -> std::optional<double> {
    if (report.split_ms.step <= 0) return std::nullopt;
    return report.split_ms.exposed_wait / report.split_ms.step;
  });
  figures.megabytes = median_of(row, [](const RunReport& report) {
    return std::optional((report.bytes_out_per_step + report.bytes_in_per_step) / 1e6);
  });
  figures.server_megabytes =
      median_of(row, [&](const RunReport& report) { return server_megabytes(report, row.workers); });
  figures.codec_ms = median_of(row, any(&RunReport::codec_ms, 1));
  figures.staleness = median_of(row, any(&RunReport::staleness_mean, 1));
  // It is not known for the processes of a simulated cluster, which share one program.
  figures.memory_mb = median_of(row, [](const RunReport& report) -> std::optional<double> {
    if (report.memory.all == 0) return std::nullopt;
    return static_cast<double>(report.memory.all) / 1e6;
  });
  figures.quality = estimate(series_of(row, quality));
  const Estimate loss = estimate(series_of(row, [](const RunReport& report) { return report.final_test_loss; }));
  if (loss.count > 0) figures.loss = loss.mean;
  figures.to_target = estimate(series_of(row, seconds_to_target));
  figures.resolution = median_of(row, [](const RunReport& report) { return report.seconds_to_target_resolution; });
  return figures;
}

void add_costs(const prediction::HostPrices& prices, const ComparedRow& row, RowFigures& figures) {
  if (row.workers == 0) return;
  constexpr double kSecondsOfAnHour = 3600;
  const double price = (row.workers * prices.worker + row.servers * prices.server) / kSecondsOfAnHour;
  if (figures.training_seconds.count > 0) figures.cost = price * figures.training_seconds.mean;
  if (figures.to_target.count > 0) figures.cost_to_target = price * figures.to_target.mean;
}

// Two rounds or more, all at one speed, but for rounding.
bool repeats_itself(const ComparedRow& row) {
  std::vector<double> speeds;
  for (const std::optional<double>& speed : throughput_series(row)) {
    if (speed) speeds.push_back(*speed);
  }
  if (speeds.size() < 2) return false;
  const auto [least, most] = std::ranges::minmax(speeds);
  return most <= least * (1 + 1e-9);
}

// Compares rows with the first, by round if rounds pair them.
void judge(const ComparisonReport& report, ComparisonFigures& figures) {
  if (!report.in_rounds) {
    const RowFigures& first = figures.rows.front();
    for (RowFigures& row : figures.rows) {
      const auto ratio = [](const Estimate& own, const Estimate& of) {
        return Difference{.estimate = of.count > 0 && of.mean > 0 ? own.mean / of.mean : 0};
      };
      row.speed = ratio(row.samples_per_second, first.samples_per_second);
      row.target_ratio = ratio(row.to_target, first.to_target);
      row.quality_gain.estimate = row.quality.mean - first.quality.mean;
    }
    return;
  }
  const auto all = [&](const RunFigure& figure) {
    std::vector<Series> rows;
    for (const ComparedRow& row : report.rows) rows.push_back(series_of(row, figure));
    return rows;
  };
  const std::vector<Difference> speed = ratios(all(throughput)), to_target = ratios(all(seconds_to_target)),
                                gain = differences(all(quality));
  for (std::size_t row = 0; row < figures.rows.size(); ++row) {
    figures.rows[row].speed = speed[row];
    figures.rows[row].target_ratio = to_target[row];
    figures.rows[row].quality_gain = gain[row];
  }
  figures.is_exact = report.simulated && std::ranges::all_of(report.rows, repeats_itself);
  for (std::size_t row = 1; figures.is_exact && row < figures.rows.size(); ++row) {
    Difference& speed_of = figures.rows[row].speed;
    if (speed_of.pairs == 0) continue;
    speed_of.interval = {speed_of.estimate, speed_of.estimate};
    speed_of.verdict = std::abs(speed_of.estimate - 1) <= kAlike ? Verdict::kNoDifferenceShown
                       : speed_of.estimate > 1                   ? Verdict::kHigher
                                                                 : Verdict::kLower;
  }
}

std::string judged_line(const ComparisonReport& report, const ComparisonFigures& figures) {
  if (!report.in_rounds) return "Not judged: finished runs did not run in turns, so no round pairs them.";
  if (figures.is_exact) {
    return fmt::format(
        "Judged as exact: rounds of each row are equal, since this simulation draws nothing that moves its times. Rows "
        "within {:g} % of the first are called no different.",
        100 * kAlike);
  }
  if (report.simulated && figures.most_rounds == 1) {
    return "Not judged: 1 round; from 2 on (--repeat=2) it shows whether the simulation draws anything, and if not, it "
           "is judged.";
  }
  if (figures.most_rounds < kFewestRounds) {
    return fmt::format("Not judged: {} round{}; from {} on (--repeat={}) there are intervals and verdicts.",
                       figures.most_rounds, figures.most_rounds == 1 ? "" : "s", kFewestRounds, 2 * kFewestRounds);
  }
  return fmt::format(
      "Judged by differences within a round (t of logarithms, {}Holm over the rows): of comparisons of equal rows, at "
      "most 1 in 20 calls any different. A difference is claimed only where 1 lies outside the interval.",
      figures.most_rounds >= 10 ? "a tenth trimmed at each end, " : "");
}

// Names the row whose successive rounds were most alike, if its interval shows it.
std::string alike_line(const ComparisonReport& report, const ComparisonFigures& figures) {
  constexpr double kMuchAlike = 0.3;
  std::size_t most = 0;
  for (std::size_t row = 0; row < figures.rows.size(); ++row) {
    if (figures.rows[row].speed.autocorrelation > figures.rows[most].speed.autocorrelation) most = row;
  }
  if (figures.rows.empty() || figures.rows[most].speed.autocorrelation < kMuchAlike) return "";
  return fmt::format(
      "Successive rounds are alike: the ratio of {} hangs together with that of the round before (autocorrelation "
      "{:.1f}), as where a machine is now slow, now fast for one row. Intervals are wider for it; more rounds narrow "
      "them.",
      report.rows[most].label, figures.rows[most].speed.autocorrelation);
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

std::optional<std::size_t> middle_round(const ComparedRow& row) {
  std::vector<std::size_t> rounds;
  for (std::size_t round = 0; round < row.rounds.size(); ++round) {
    if (row.rounds[round]) rounds.push_back(round);
  }
  if (rounds.empty()) return std::nullopt;
  std::ranges::stable_sort(rounds, {}, [&](std::size_t round) { return row.rounds[round]->samples_per_second; });
  return rounds[(rounds.size() - 1) / 2];
}

std::vector<RunReport> finished_rounds(const ComparedRow& row) {
  std::vector<RunReport> reports;
  for (const std::optional<RunReport>& round : row.rounds) {
    if (round) reports.push_back(*round);
  }
  return reports;
}

Series throughput_series(const ComparedRow& row) { return series_of(row, throughput); }

ComparisonFigures figures_of(const ComparisonReport& report) {
  ComparisonFigures figures;
  for (const ComparedRow& row : report.rows) {
    figures.rows.push_back(own_figures(row));
    if (report.prices) add_costs(*report.prices, row, figures.rows.back());
    const RowFigures& own = figures.rows.back();
    figures.has_codec |= own.codec_ms.value_or(0) > 0;
    figures.most_rounds = std::max(figures.most_rounds, own.rounds);
    figures.fewest_rounds = &row == &report.rows.front() ? own.rounds : std::min(figures.fewest_rounds, own.rounds);
    for (const std::optional<RunReport>& round : row.rounds) {
      if (round && final_headline(*round)) figures.quality = headline_name(round->final_figures);
    }
  }
  if (!figures.rows.empty()) judge(report, figures);
  return figures;
}

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

namespace {

// Answers for virtual times, whose noise is what was asked for and not the machine's.
std::string simulated_answer(const ComparisonReport& report, const ComparisonFigures& figures, std::size_t best) {
  const double most = figures.rows[best].samples_per_second.mean;
  double next = 0;
  std::vector<std::string> alike;
  for (std::size_t row = 0; row < figures.rows.size(); ++row) {
    const double its = figures.rows[row].samples_per_second.mean;
    if (row == best || figures.rows[row].samples_per_second.count == 0) continue;
    if (its >= (1 - kAlike) * most) alike.push_back(report.rows[row].label);
    next = std::max(next, its);
  }
  const std::string& label = report.rows[best].label;
  if (!alike.empty()) {
    return fmt::format("Answer: in this simulation {} and {} are equally fast, within {:g} %.", label,
                       fmt::join(alike, ", "), 100 * kAlike);
  }
  return fmt::format("Answer: {} is the fastest in this simulation; what comes next has {:.3g} % fewer samples/s.",
                     label, 100 * (1 - next / most));
}

}  // namespace

std::string answer_of(const ComparisonReport& report, const ComparisonFigures& figures) {
  if (figures.rows.size() < 2 || figures.most_rounds == 0) return "";
  const auto name = [&](std::size_t row) { return report.rows[row].label; };
  const auto speed = [&](std::size_t row) { return figures.rows[row].samples_per_second; };
  std::size_t best = 0;
  for (std::size_t row = 0; row < figures.rows.size(); ++row) {
    if (speed(row).count > 0 && speed(row).mean > speed(best).mean) best = row;
  }
  if (speed(best).count == 0 || !(speed(best).mean > 0)) return "";
  const std::string rounds = fmt::format("{} round{}", figures.most_rounds, figures.most_rounds == 1 ? "" : "s");
  if (!report.in_rounds) {
    return fmt::format(
        "Answer: {} had the most samples/s, in runs that did not take turns: it need not be the fastest.", name(best));
  }
  if (figures.is_exact) return simulated_answer(report, figures, best);
  if (figures.most_rounds < kFewestRounds) {
    if (report.simulated) return simulated_answer(report, figures, best);
    return fmt::format("Answer: {} had the most samples/s in {}, too few to say that it is the fastest.", name(best),
                       rounds);
  }
  // Held against the best, whatever the table's baseline is.
  std::vector<Series> against = {throughput_series(report.rows[best])};
  std::vector<std::size_t> others;
  for (std::size_t row = 0; row < figures.rows.size(); ++row) {
    if (row == best || speed(row).count == 0) continue;
    against.push_back(throughput_series(report.rows[row]));
    others.push_back(row);
  }
  const std::vector<Difference> judged = ratios(against);
  std::vector<std::string> alike;
  std::optional<std::size_t> next;
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (judged[i + 1].verdict != Verdict::kLower) alike.push_back(name(others[i]));
    if (!next || judged[i + 1].estimate > judged[*next + 1].estimate) next = i;
  }
  if (!next) return "";
  if (!alike.empty()) {
    return fmt::format("Answer: {} had the most samples/s, but over {} no difference is shown from {}.", name(best),
                       rounds, fmt::join(alike, ", "));
  }
  const Interval& lead = *judged[*next + 1].interval;
  return fmt::format("Answer: {} is the fastest: {} comes next, with {:.4g} to {:.4g} % fewer samples/s over {}.",
                     name(best), name(others[*next]), 100 * (1 - lead.high), 100 * (1 - lead.low), rounds);
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
  return lines;
}

}  // namespace syncopate::experiments
