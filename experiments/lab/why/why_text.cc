#include "experiments/lab/why/why_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "common/text/format.h"
#include "experiments/config/wrapped_text.h"
#include "experiments/lab/report/text_table.h"
#include "experiments/lab/why/device_text.h"

namespace syncopate::experiments {
namespace {

// Less of a step is not worth a row, unless something is missing there.
constexpr double kShownPart = 0.0005;
// A whole job whose rate is below this part of its window's is worth a sentence.
constexpr double kMuchLess = 0.9;
constexpr int kColumns = 80;
// Evidence is no narrower, however wide what stands before it is.
constexpr int kLeastColumns = 24;

std::string whole(double part) { return fmt::format("{:.0f} %", 100 * part); }

std::string ms_text(double ms) { return std::abs(ms) < 0.0005 ? "0" : fmt::format("{:.3g}", ms); }
std::string signed_ms(double ms) { return std::abs(ms) < 0.0005 ? "0" : fmt::format("{:+.3g}", ms); }

std::string reached(const ExplainedRun& run) {
  const Waterfall& waterfall = run.waterfall;
  const std::string measured = format_ms(waterfall.measured_ms), ideal = format_ms(waterfall.ideal_ms);
  std::string text = fmt::format(
      "{} of ideal: {} of {} samples/s, since a step takes {} ms{}.", whole(waterfall.ideal_ms / waterfall.measured_ms),
      format_count(waterfall.measured_rate()), format_count(waterfall.ideal_rate()), measured,
      measured == ideal ? ", as the ideal one does" : fmt::format(" and not {} ms", ideal));
  if (run.steps_recorded < run.steps_made) {
    text += fmt::format(" steps.csv has {} of the run's {} steps, and these figures are of what it has.",
                        run.steps_recorded, run.steps_made);
  }
  if (!run.pace.lost.empty()) {
    text += fmt::format(" Worker{} {} {} lost: the figures are of those that trained.",
                        run.pace.lost.size() == 1 ? "" : "s", fmt::join(run.pace.lost, ", "),
                        run.pace.lost.size() == 1 ? "was" : "were");
  }
  if (run.job_rate && *run.job_rate < kMuchLess * waterfall.measured_rate()) {
    text += fmt::format(" That is {}; the whole job made {}.",
                        waterfall.has_window ? "of the steady window, in which all train at once" : "of all steps",
                        format_count(*run.job_rate));
  }
  return text;
}

// The share of what was lost.
std::string share_of_loss(double ms, const Waterfall& waterfall) {
  const double lost = waterfall.measured_ms - waterfall.ideal_ms;
  return lost > 0 ? whole(std::min(1.0, ms / lost)) : "0 %";
}

std::string change_text(const Cause& cause) {
  std::string text = fmt::format("Change first: {}.", cause.change);
  if (cause.predicted_rate) {
    text += fmt::format(" Predicted: {} samples/s ({}).", format_count(*cause.predicted_rate), cause.by);
  }
  return text;
}

std::string headline(const ExplainedRun& run) {
  if (run.causes.empty()) {
    return fmt::format("{} No single cause takes {} of a step.", reached(run), whole(kNamedPart));
  }
  const Cause& first = run.causes.front();
  return fmt::format("{} What costs most is {}, {} ms a step, {} of what is lost{}.", reached(run), first.phrase,
                     format_ms(first.ms), share_of_loss(first.ms, run.waterfall),
                     first.evidence.empty() ? "" : ": " + first.evidence);
}

// Appends a cell to each line of a table, in lines of its own column.
std::string with_last_column(const std::string& table, const std::vector<std::string>& cells) {
  std::istringstream lines(table);
  std::string text, line;
  for (std::size_t i = 0; std::getline(lines, line); ++i) {
    const int column = static_cast<int>(line.size()) + 2;
    const std::string cell =
        i < cells.size() ? wrapped(cells[i], column, std::max(kColumns, column + kLeastColumns)) : "";
    text += cell.empty() ? line + "\n" : line + cell.substr(line.size());
  }
  return text;
}

std::string waterfall_table(const ExplainedRun& run) {
  const Waterfall& waterfall = run.waterfall;
  std::vector<std::vector<std::string>> rows{{"part", "ms a step", "samples/s left"}};
  std::vector<std::string> evidence{"evidence"};
  double step = waterfall.ideal_ms;
  rows.push_back({"ideal", ms_text(step), format_count(waterfall.rate_of(step))});
  evidence.push_back(ideal_text(waterfall, run.pace));
  for (const Part& part : waterfall.parts) {
    const std::string known = evidence_of(part.kind, waterfall, run.pace);
    step += part.ms;
    const bool is_missing = known.starts_with("not recorded");
    if (std::abs(part.ms) < kShownPart * waterfall.measured_ms && !is_missing) continue;
    rows.push_back({name_of(part.kind), signed_ms(part.ms), format_count(waterfall.rate_of(step))});
    evidence.push_back(known);
  }
  rows.push_back({"measured", ms_text(waterfall.measured_ms), format_count(waterfall.measured_rate())});
  evidence.push_back(fmt::format("mean of {} steps{}", waterfall.steps,
                                 waterfall.has_window ? "" : ", warm-up included: workers share no steady window"));
  return with_last_column(text_table(rows), evidence);
}

std::string closed_form_line(const ExplainedRun& run) {
  if (!run.predicted_rate) return "";
  const double measured = run.waterfall.measured_rate();
  return fmt::format("closed form, with this computing: {} samples/s; measured is {} of it\n",
                     format_count(*run.predicted_rate), whole(measured / *run.predicted_rate));
}

std::string name_of_folder(const ExplainedRun& run) {
  const std::filesystem::path path(run.folder);
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

std::string other_causes(const ExplainedRun& run) {
  std::string text;
  for (std::size_t i = 1; i < run.causes.size(); ++i) {
    const Cause& cause = run.causes[i];
    if (cause.change == run.causes.front().change) {
      text += fmt::format("then {}, {} ms: the same\n", cause.phrase, format_ms(cause.ms));
      continue;
    }
    text += fmt::format("then {}, {} ms: {}", cause.phrase, format_ms(cause.ms), cause.change);
    if (cause.predicted_rate) {
      text += fmt::format("; predicted alone: {} samples/s ({})", format_count(*cause.predicted_rate), cause.by);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string paragraph_of(const ExplainedRun& run) {
  return headline(run) + (run.causes.empty() ? "" : " " + change_text(run.causes.front()));
}

std::string why_text(const ExplainedRun& run) {
  std::string what = fmt::format("{}: {}", name_of_folder(run), run.pace.what);
  if (run.repeats > 1) what += fmt::format("; repeat {} of {}, that of median throughput", run.repeat + 1, run.repeats);
  if (run.first_step > 0) what += fmt::format("; from step {} on, where it was resumed", run.first_step);
  if (run.outcome != "completed") what += fmt::format("; {}", run.outcome);
  std::string text = wrapped(headline(run), 0, kColumns) + "\n" + wrapped(what, 0, kColumns) + waterfall_table(run) +
                     wrapped(closed_form_line(run), 0, kColumns) + device_text(run);
  if (!run.causes.empty()) {
    text += "\n" + wrapped(change_text(run.causes.front()), 0, kColumns) + wrapped_prose(other_causes(run), kColumns);
  }
  return text;
}

std::string difference_text(const ExplainedRun& first, const ExplainedRun& second) {
  const Waterfall &a = first.waterfall, &b = second.waterfall;
  const double difference = b.measured_ms - a.measured_ms;
  std::vector<std::pair<std::string, double>> changes{{"one worker's own computing", b.ideal_ms - a.ideal_ms}};
  for (std::size_t i = 0; i < a.parts.size(); ++i) {
    changes.emplace_back(name_of(a.parts[i].kind), b.parts[i].ms - a.parts[i].ms);
  }
  const auto most = std::ranges::max_element(
      changes, {}, [&](const auto& change) { return difference < 0 ? -change.second : change.second; });
  const std::string names[] = {name_of_folder(first), name_of_folder(second)};
  std::string text =
      fmt::format("{} takes {} ms a step, {} ms {} than {} ({} and {} samples/s).", names[1], format_ms(b.measured_ms),
                  format_ms(std::abs(difference)), difference < 0 ? "less" : "more", names[0],
                  format_count(b.measured_rate()), format_count(a.measured_rate()));
  text += fmt::format(" Most of that is {}: {} ms.", most->first, signed_ms(most->second));
  text = wrapped(text, 0, kColumns) + "\n";
  std::vector<std::vector<std::string>> rows{{"part, ms a step", names[0], names[1], "difference"}};
  rows.push_back({"ideal", ms_text(a.ideal_ms), ms_text(b.ideal_ms), signed_ms(b.ideal_ms - a.ideal_ms)});
  for (std::size_t i = 0; i < a.parts.size(); ++i) {
    const double before = a.parts[i].ms, after = b.parts[i].ms;
    if (std::max(std::abs(before), std::abs(after)) < kShownPart * std::max(a.measured_ms, b.measured_ms)) continue;
    rows.push_back({name_of(a.parts[i].kind), signed_ms(before), signed_ms(after), signed_ms(after - before)});
  }
  rows.push_back({"measured", ms_text(a.measured_ms), ms_text(b.measured_ms), signed_ms(difference)});
  text += text_table(rows);
  for (const ExplainedRun* run : {&first, &second}) {
    text += "\n" + wrapped(fmt::format("{}: {}", name_of_folder(*run), run->pace.what), 0, kColumns) +
            wrapped(paragraph_of(*run), 0, kColumns);
  }
  return text;
}

}  // namespace syncopate::experiments
