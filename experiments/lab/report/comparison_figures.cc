#include "experiments/lab/report/comparison_figures.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "experiments/lab/report/machine_state.h"
#include "experiments/lab/report/statistics.h"
#include "experiments/lab/report/steadiness.h"

namespace syncopate::experiments {
namespace {

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
  figures.goodput = median_of(row, [](const RunReport& report) { return report.goodput; });
  figures.quality = estimate(series_of(row, quality), Rounds::kIndependent);
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
  const Judging again{.analyses = report.analyses};
  const std::vector<Difference> speed = ratios(all(throughput), again),
                                to_target = ratios(all(seconds_to_target), again),
                                gain = differences(all(quality), {.rounds = Rounds::kIndependent});
  for (std::size_t row = 0; row < figures.rows.size(); ++row) {
    figures.rows[row].speed = speed[row];
    figures.rows[row].target_ratio = to_target[row];
    figures.rows[row].quality_gain = gain[row];
  }
  figures.is_exact = report.is_certain || (report.simulated && std::ranges::all_of(report.rows, repeats_itself));
  const Estimate& first = figures.rows.front().samples_per_second;
  for (std::size_t row = 1; figures.is_exact && row < figures.rows.size(); ++row) {
    Difference& speed_of = figures.rows[row].speed;
    const Estimate& own = figures.rows[row].samples_per_second;
    if (first.count == 0 || own.count == 0) continue;
    speed_of.estimate = own.mean / first.mean;
    speed_of.interval = {speed_of.estimate, speed_of.estimate};
    speed_of.verdict = std::abs(speed_of.estimate - 1) <= kExactlyAlike ? Verdict::kNoDifferenceShown
                       : speed_of.estimate > 1                          ? Verdict::kHigher
                                                                        : Verdict::kLower;
  }
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
Series quality_series(const ComparedRow& row) { return series_of(row, quality); }

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

}  // namespace syncopate::experiments
