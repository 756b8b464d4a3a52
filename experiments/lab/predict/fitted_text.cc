#include "experiments/lab/predict/fitted_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/text/format.h"
#include "common/text/list_text.h"
#include "experiments/lab/predict/percent.h"
#include "experiments/lab/predict/plan_name.h"
#include "experiments/lab/report/text_table.h"

namespace syncopate::experiments {
namespace {

using prediction::FittedValue;
using prediction::ScalingFit;
using prediction::Unknown;

std::string sizes_text(const std::vector<int>& sizes) {
  std::vector<std::string> texts;
  for (const int size : sizes) texts.push_back(std::to_string(size));
  return fmt::format("{} worker{}", list_text(texts, "and"), sizes == std::vector{1} ? "" : "s");
}

// "2.1 % (0.4 to 5.7 %)"
std::string share_text(const FittedValue& value) {
  const auto text = [](double share) { return fmt::format("{:.{}f}", 100 * share, share < 0.1 ? 1 : 0); };
  return fmt::format("{} % ({} to {} %)", text(value.median), text(value.low), text(value.high));
}

// Whether what was measured has said anything of it: that its interval is narrower than before.
bool is_told(const ScalingFit& fit, Unknown unknown) {
  constexpr double kNarrower = 0.8;
  const FittedValue before = fit.prior(unknown), after = fit.value(unknown);
  return after.high - after.low < kNarrower * (before.high - before.low);
}

std::string about_fit(const FittedWay& way) {
  const FittedValue alone = way.fit.value(Unknown::kAlone);
  std::string text =
      fmt::format("{}, fitted to {}: a step alone takes {} ms ({} to {})", way.name, sizes_text(way.measured),
                  format_ms(alone.median * 1e3), format_ms(alone.low * 1e3), format_ms(alone.high * 1e3));
  const std::pair<Unknown, const char*> parts[] = {
      {Unknown::kFixed, "an exchange costs {} of that whatever its bytes"},
      {Unknown::kJitter, "steps of a worker deviate by {}, and the slowest counts"},
      {Unknown::kLinkShare, "a link achieves {} of its rate"},
      {Unknown::kHidden, "{} of what can hide beside computation does"}};
  std::vector<std::string> untold;
  for (const auto& [unknown, form] : parts) {
    const std::string one = fmt::format(fmt::runtime(form), share_text(way.fit.value(unknown)));
    if (is_told(way.fit, unknown)) {
      text += "; " + one;
    } else {
      untold.push_back(one);
    }
  }
  text += ".";
  if (!untold.empty()) text += fmt::format(" These sizes hardly tell the rest: {}.", list_text(untold, "and"));
  return text;
}

void add_warnings(const ScaledJob& job, const FittedWay& way, std::vector<std::string>& sentences) {
  constexpr int kFar = 4;  // times the largest size that was measured
  const int most = way.measured.back();
  std::vector<std::string> off;
  for (const FittedSize& size : way.sizes) {
    if (!size.measured) continue;
    const double fitted = job.samples_per_second(size.workers, size.step.median);
    if (job.samples_per_second(size.workers, size.step.high) <= *size.measured &&
        *size.measured <= job.samples_per_second(size.workers, size.step.low)) {
      continue;
    }
    off.push_back(fmt::format("{} where {} worker{} {}", format_count(fitted), size.workers,
                              size.workers == 1 ? " has" : "s have", format_count(*size.measured)));
  }
  if (!off.empty()) {
    sentences.push_back(
        fmt::format("beware: the form of {} does not come to what was measured: it has {} samples/s. What it says of "
                    "other sizes is no better than that.",
                    way.name, list_text(off, "and")));
  }
  const int asked = way.sizes.back().workers;
  if (job.network(asked).hosts() > 1 && job.network(most).hosts() == 1) {
    sentences.push_back(
        fmt::format("beware: no run of {} crossed from host to host, so that nothing measured says "
                    "what a link achieves.",
                    way.name));
  } else if (asked > kFar * most) {
    sentences.push_back(fmt::format("beware: {} workers are {} times as many as {} was measured with at the most.",
                                    asked, asked / most, way.name));
  }
}

}  // namespace

std::vector<std::vector<std::string>> fitted_rows(const ScaledJob& job, const std::vector<FittedWay>& ways) {
  constexpr std::ptrdiff_t kBehindRate = 3;  // cells of a plan, before those of the fit
  std::vector<std::vector<std::string>> rows = {{"exchange", "workers"}};
  const auto add = [&](std::vector<std::string> of_plan, const std::vector<std::string>& of_fit) {
    of_plan.insert(of_plan.begin() + kBehindRate, of_fit.begin(), of_fit.end());
    rows.back().insert(rows.back().end(), of_plan.begin(), of_plan.end());
  };
  add(plan_columns(job), {"9 of 10", "measured"});
  for (const FittedWay& way : ways) {
    const ScaledJob fitted = way.fitted_job(job);
    for (const FittedSize& size : way.sizes) {
      const auto rate = [&](double step) { return format_count(job.samples_per_second(size.workers, step)); };
      rows.push_back({way.name_of(job, size), std::to_string(size.workers)});
      add(plan_cells(fitted, size.workers, size.plan, size.step.median),
          {fmt::format("{} to {}", rate(size.step.high), rate(size.step.low)),
           size.measured ? format_count(*size.measured) : "-"});
    }
  }
  return rows;
}

std::vector<std::string> fitted_sentences(const ScaledJob& job, const MeasuredRuns& measured,
                                          const std::vector<FittedWay>& ways) {
  std::vector<std::string> sentences = {
      "9 of 10: samples/s between which the measurement is expected to lie in nine of ten cases; measured: of runs of "
      "ours, once all workers were warm."};
  for (const FittedWay& way : ways) {
    sentences.push_back(about_fit(way));
    add_warnings(job, way, sentences);
  }
  sentences.insert(sentences.end(), measured.notes.begin(), measured.notes.end());
  for (const std::string& one : measured.left_out) sentences.push_back("Left out: " + one + ".");
  sentences.emplace_back("How sure: run_experiment reproduce fitted-sizes holds such fits against published tables.");
  return sentences;
}

std::string fitted_text(const ScaledJob& job, const MeasuredRuns& measured, const std::vector<FittedWay>& ways) {
  std::string text = title_of(job, kFitted) + "\n" + text_table(fitted_rows(job, ways)) + "\n";
  for (const std::string& sentence : fitted_sentences(job, measured, ways)) text += sentence + "\n";
  return text;
}

}  // namespace syncopate::experiments
