#include "experiments/lab/compare/row_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "common/text/format.h"

namespace syncopate::experiments {
namespace {

std::string result_text(const JobResult& result) {
  if (result.exit == ExitCode::kNotFinite) return "diverged";
  if (result.exit != ExitCode::kSuccess || result.reports.empty()) return "not finished";
  const RunReport& report = result.reports.front();
  if (is_profile(result.config))
    return fmt::format("{} samples/s", format_count(report.samples_per_second.value_or(0)));
  return fmt::format("{} samples/s  {}{}",
                     report.samples_per_second ? format_count(*report.samples_per_second) : std::string("-"),
                     final_headline(report) ? to_text(report.final_test_accuracy.value_or(0), report.final_figures)
                                            : std::string("not evaluated"),
                     has_diverged(result) ? ", diverged" : "");
}

// What stands behind `begun`: in a line of its own where both do not fit into one.
std::string behind(const std::string& begun, const std::string& result) {
  constexpr std::size_t kMostColumns = 80;
  return begun.size() + result.size() > kMostColumns ? "\n    " + result : result;
}

}  // namespace

void TimeLeft::skip(std::size_t row) {
  if (ahead_[row] > 0) --ahead_[row];
}

void TimeLeft::ran(std::size_t row, double seconds) {
  skip(row);
  took_[row].seconds += seconds;
  ++took_[row].runs;
}

std::optional<double> TimeLeft::seconds() const {
  Took all;
  for (const Took& took : took_) {
    all.seconds += took.seconds;
    all.runs += took.runs;
  }
  if (all.runs == 0) return std::nullopt;
  double left = 0;
  for (std::size_t row = 0; row < ahead_.size(); ++row) {
    const Took& took = took_[row].runs > 0 ? took_[row] : all;
    left += static_cast<double>(ahead_[row]) * took.seconds / static_cast<double>(took.runs);
  }
  return left;
}

std::string folder_of(std::string label) {
  std::ranges::replace_if(
      label,
      [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return std::isalnum(byte) == 0 && c != '.' && c != '_' && c != '+';
      },
      '-');
  return label;
}

JobResult RowRunner::run(std::size_t row, const std::string& what, ResolvedRun config) {
  config.repeat = 1;
  Result<std::optional<JobResult>> before = kept_.find(config);
  if (!before.ok()) {
    JobResult failed;
    failed.exit = exit_code_of(before.status());
    failed.verdict = before.status().message();
    return failed;
  }
  if (before->has_value()) {
    left_.skip(row);
    ++kept_runs_;
    const std::string kept = what + "  kept            ";
    console_.say(kept + behind(kept, result_text(**before)));
    return std::move(**before);
  }
  std::optional<double> left = left_.seconds();
  if (left && end_) left = std::min(*left, std::max(0.0, seconds(*end_ - clock_.now())));
  const std::string begun = fmt::format("{}  ETA {:<7} ... ", what, left ? format_duration(*left) : "unknown");
  console_.say_part(begun);
  const TimePoint begin = clock_.now();
  JobResult result = run_job_(config);
  left_.ran(row, seconds(clock_.now() - begin));
  ++ran_;
  console_.say(behind(begun, result_text(result)));
  return result;
}

}  // namespace syncopate::experiments
