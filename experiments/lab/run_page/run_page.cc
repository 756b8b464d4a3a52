#include "experiments/lab/run_page/run_page.h"

#include <fmt/format.h>

#include "common/text/format.h"
#include "experiments/cluster/control/figure_text.h"
#include "experiments/config/toml.h"
#include "experiments/lab/report/environment_rows.h"
#include "experiments/lab/report/html_page.h"
#include "experiments/lab/report/html_text.h"
#include "experiments/lab/report/machine_state.h"
#include "experiments/lab/report/summary_text.h"
#include "experiments/lab/run_page/curve_charts.h"
#include "experiments/lab/run_page/step_charts.h"
#include "experiments/lab/why/causes.h"

namespace syncopate::experiments {
namespace {

using FactRows = std::vector<std::vector<std::string>>;

std::string percent_of(double part) { return fmt::format("{:.1f} %", 100 * part); }

// Returns "simulated in virtual time: network ..., compute ..."; empty for a real run.
std::string how_simulated(const ReportedRun& run) {
  if (!run.simulated()) return {};
  const RunSummary& summary = run.recorded.summary;
  std::string text = "simulated in virtual time";
  if (!summary.simulated_network.empty()) text += ", network: " + summary.simulated_network;
  if (!summary.simulated_compute.empty()) text += ", compute: " + summary.simulated_compute;
  return text;
}

void add_learnt(const RunReport& report, FactRows& rows) {
  const char* const unit = loss_unit(report.final_figures);
  if (final_headline(report)) {
    rows.push_back(
        {"at the end, on the test set", to_text(report.final_test_accuracy.value_or(0), report.final_figures)});
  }
  if (report.final_test_loss) rows.push_back({"test loss", figure_text(*report.final_test_loss) + " " + unit});
  if (report.final_train_loss) {
    rows.push_back(
        {"training loss, mean of the last tenth of the steps", figure_text(*report.final_train_loss) + " " + unit});
  }
  if (report.final_validation) {
    rows.push_back({"at the end, on what was held out",
                    fmt::format("{}, loss {} {}",
                                report.final_validation->r2 ? "R2 " + figure_text(*report.final_validation->r2)
                                                            : percent_of(report.final_validation->accuracy),
                                report.final_validation->loss, unit)});
  }
  if (report.seconds_to_target) {
    rows.push_back({report.final_validation ? "the target was reached, by what was held out, after"
                                            : "the target was reached after",
                    format_duration(*report.seconds_to_target)});
  }
}

void add_speed(const ReportedRun& run, FactRows& rows) {
  const RunReport& report = run.report();
  const Waterfall& waterfall = run.explained.waterfall;
  if (report.samples_per_second) {
    rows.push_back({"throughput of the whole job", format_count(*report.samples_per_second) + " samples/s"});
  }
  if (report.goodput) {
    rows.push_back(
        {"goodput: computed for updates that the weights have", percent_of(*report.goodput) + " of the workers' time"});
  }
  if (report.window) {
    rows.push_back({report.lost_workers.empty() ? "throughput while all workers train, beyond their warm-up"
                                                : "throughput beyond the warm-up, of the workers that were there",
                    format_count(report.window->samples_per_second) + " samples/s"});
  }
  rows.push_back({"ideal throughput", format_count(waterfall.ideal_rate()) + " samples/s"});
  rows.push_back({"efficiency: ideal step over measured step", percent_of(waterfall.ideal_ms / waterfall.measured_ms)});
  if (run.explained.predicted_rate) {
    rows.push_back(
        {"throughput by closed form, with this computing", format_count(*run.explained.predicted_rate) + " samples/s"});
  }
  rows.push_back({"training time", format_duration(report.training_seconds)});
  rows.push_back({"samples", format_count(static_cast<double>(report.total_samples))});
  rows.push_back({"steps of all workers", format_count(static_cast<double>(report.total_steps))});
  rows.push_back({"step, median", format_ms(report.step_ms_median) + " ms"});
  rows.push_back({"step, 95th percentile", format_ms(report.step_ms_p95) + " ms"});
  if (report.split_ms.step > 0) {
    rows.push_back({"exposed wait", percent_of(report.split_ms.exposed_wait / report.split_ms.step) + " of a step"});
  }
  if (const std::optional<double> hidden = hidden_part(report)) {
    rows.push_back({"communication", fmt::format("{} ms a step, {} of it hidden behind compute",
                                                 format_ms(report.communication_ms), percent_of(*hidden))});
  }
}

std::vector<std::vector<std::string>> waterfall_rows(const ReportedRun& run) {
  const Waterfall& waterfall = run.explained.waterfall;
  std::vector<std::vector<std::string>> rows = {{"part", "ms a step", "samples/s left", "evidence"}};
  double step = waterfall.ideal_ms;
  rows.push_back(
      {"ideal", format_ms(step), format_count(waterfall.rate_of(step)), ideal_text(waterfall, run.explained.pace)});
  for (const Part& part : waterfall.parts) {
    step += part.ms;
    rows.push_back({name_of(part.kind), fmt::format("{:+.3g}", part.ms), format_count(waterfall.rate_of(step)),
                    evidence_of(part.kind, waterfall, run.explained.pace)});
  }
  rows.push_back({"measured", format_ms(waterfall.measured_ms), format_count(waterfall.measured_rate()),
                  fmt::format("mean of {} steps", waterfall.steps)});
  return rows;
}

std::vector<std::vector<std::string>> evaluation_rows(const ReportedRun& run) {
  const std::string quality = run.evals.empty() ? "accuracy" : headline_name(run.evals.back().figures);
  std::vector<std::vector<std::string>> rows = {
      {"epoch", "samples", run.time_label("seconds of training"), "test loss", "test " + quality}};
  const bool holds_out = !run.evals.empty() && run.evals.back().validation;
  if (holds_out)
    rows.front().insert(rows.front().end(),
                        {"validation loss", fmt::format("validation {}", run.evals.back().validation->quality_name())});
  for (const EvalRecord& eval : run.evals) {
    rows.push_back({fmt::format("{:g}", eval.epoch), format_count(static_cast<double>(eval.samples_seen)),
                    fmt::format("{:.3f}", eval.training_seconds), figure_text(eval.loss),
                    figure_text(headline_of(eval.accuracy, eval.figures))});
    if (!holds_out) continue;
    const auto cell = [](double value) { return figure_text(value); };
    rows.back().push_back(eval.validation ? cell(eval.validation->loss) : "");
    rows.back().push_back(eval.validation ? cell(eval.validation->quality()) : "");
  }
  return rows;
}

FactRows machine_rows(const ReportedRun& run) {
  FactRows rows = environment_rows(run.environment);
  if (run.report().machine) rows.push_back({"what it did meanwhile", to_text(*run.report().machine)});
  return rows;
}

std::vector<std::string> warnings_of(const ReportedRun& run) {
  std::vector<std::string> sentences;
  const RunSummary& summary = run.recorded.summary;
  if (summary.outcome != "completed") sentences.push_back("The run did not complete: " + summary.outcome);
  if (run.explained.first_step > 0) {
    sentences.push_back(
        fmt::format("The run went on from a checkpoint: all figures are of what it did from step {} on.",
                    run.explained.first_step));
  }
  if (run.explained.repeats > 1) {
    sentences.push_back(fmt::format("All that follows is of repeat {} of {}, that of median throughput.",
                                    run.explained.repeat + 1, run.explained.repeats));
  }
  if (run.report().machine && !run.simulated()) {
    for (const MachineTrouble& trouble : troubles_of(*run.report().machine)) sentences.push_back(trouble.text);
  }
  sentences.insert(sentences.end(), summary.events.begin(), summary.events.end());
  return sentences;
}

void mark_simulated(std::vector<AnyChart>& charts, const ReportedRun& run) {
  if (!run.simulated()) return;
  for (AnyChart& chart : charts) std::visit([](auto& one) { one.title += ", simulated"; }, chart);
}

std::string section(const char* heading, std::vector<AnyChart> charts, const ReportedRun& run,
                    const std::string& more = "") {
  mark_simulated(charts, run);
  const std::string drawn = html_charts(charts);
  return drawn.empty() && more.empty() ? "" : fmt::format("<h2>{}</h2>\n{}{}", heading, drawn, more);
}

}  // namespace

std::vector<std::vector<std::string>> run_facts_rows(const ReportedRun& run) {
  const RunReport& report = run.report();
  FactRows rows;
  add_speed(run, rows);
  add_learnt(report, rows);
  if (report.staleness_max > 0) {
    rows.push_back({"staleness", fmt::format("{:.2f} mean, {:.1f} p95, {} max updates", report.staleness_mean,
                                             report.staleness_p95, report.staleness_max)});
  }
  if (report.bytes_out_per_step > 0 || report.bytes_in_per_step > 0) {
    rows.push_back({"payload a step and worker", fmt::format("{} out, {} in", format_bytes(report.bytes_out_per_step),
                                                             format_bytes(report.bytes_in_per_step))});
  }
  if (report.dropped > 0) rows.push_back({"gradients that came too late", percent_of(report.dropped)});
  if (report.memory.all > 0) {
    rows.push_back({"memory, all processes", format_bytes(static_cast<double>(report.memory.all))});
  }
  return rows;
}

std::string run_html(const ReportedRun& run) {
  const std::string title = fmt::format("{}: {}", describe(run.recorded.config), model_on_data(run.recorded.config));
  const std::string simulated = how_simulated(run), link = describe_link(run.recorded.config);
  std::string lead = fmt::format("<p class=\"lead\">{}</p>\n", html_text(paragraph_of(run.explained)));
  if (!simulated.empty()) lead += fmt::format("<p><span class=\"badge\">{}</span></p>\n", html_text(simulated));
  if (!link.empty()) lead += fmt::format("<p>The network is {}.</p>\n", html_text(link));
  const std::string command = command_again(run.recorded.folder) + "\n";
  return html_page(
      title, lead + html_list(warnings_of(run)) + section("What was learnt, and how fast", curve_charts(run), run) +
                 section("Where the time went", {waterfall_chart(run), split_chart(run), timeline_chart(run)}, run,
                         html_folded("The parts of a step, with evidence",
                                     html_table(waterfall_rows(run), "Parts of a step"))) +
                 section("What travelled", {bytes_chart(run), staleness_chart(run), staleness_loss_chart(run)}, run) +
                 "<h2>Figures</h2>\n" + html_facts(run_facts_rows(run), "Figures of the run") +
                 html_folded("Evaluations", html_table(evaluation_rows(run), "Evaluations")) + "<h2>Machine</h2>\n" +
                 html_facts(machine_rows(run), "Machine") + html_lines("The same run again", command) +
                 html_lines("Its configuration", to_toml(run.recorded.config)));
}

}  // namespace syncopate::experiments
