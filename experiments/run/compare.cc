#include "experiments/run/compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/report/comparison_files.h"
#include "experiments/report/comparison_text.h"
#include "experiments/run/console.h"
#include "experiments/run/equality.h"

namespace syncopate::experiments {
namespace {

// "ps:bounded:4 batch-size=32" -> "ps-bounded-4-batch-size-32"
std::string folder_of(std::string label) {
  std::ranges::replace_if(
      label, [](char c) { return c == ':' || c == ' ' || c == '=' || c == '/'; }, '-');
  return label;
}

std::string title_of(const ComparisonJob& job) {
  const RunConfig config = resolve(job.runs.front().config, "");
  return fmt::format("{} on {}{}{}", config.model, config.dataset,
                     job.option.empty() ? "" : fmt::format(", {} varied", job.option),
                     job.base.shape ? ", link emulated: " + job.base.shape->describe() : "");
}

class Comparison {
 public:
  Comparison(const ComparisonJob& job, const JobRunner& runner)
      : job_(job),
        base_(job.base),
        run_job_(runner),
        folder_(base_.output.empty() ? "results/" + calendar_stamp() + "-compare" : base_.output) {}

  ExitCode run() {
    const std::vector<ComparedRun>& runs = job_.runs;
    for (const std::string& line : job_.left_out) console_.say(line);
    const ExitCode fair = prove_equality();
    if (fair != ExitCode::kSuccess) return fair;
    console_.say("");
    if (!base_.stragglers.empty()) {
      console_.say(fmt::format("straggler {}, in all modes but local\n", base_.stragglers.to_string()));
    }
    if (base_.shape) console_.say(fmt::format("link: emulated, {}, in all modes but local\n", base_.shape->describe()));
    ComparisonReport report{.job = title_of(job_), .machine = this_environment(), .target = base_.target_accuracy};
    report.rounds_asked = static_cast<std::size_t>(base_.repeat);
    if (!job_.option.empty()) report.varied = {job_.option};
    report.left_out = job_.left_out;
    for (const ComparedRun& run : runs) {
      report.rows.push_back({.label = run.label, .mode = run.mode});
      if (!run.value.empty()) report.rows.back().values = {{job_.option, run.value}};
    }
    for (int repeat = 0; repeat < base_.repeat; ++repeat) {
      report.order.emplace_back();
      for (std::size_t i = 0; i < runs.size(); ++i) {
        const std::string folder = fmt::format("{}/{}-{}", folder_, folder_of(runs[i].label), repeat + 1);
        const ExitCode exit = measure(runs[i], folder, report.rows[i]);
        if (exit != ExitCode::kSuccess) return exit;
        report.order.back().push_back(i);
      }
    }
    if (base_.shape) console_.say("\nlink: emulated, " + base_.shape->describe());
    console_.say("\n" + comparison_text(report));
    const Status written = write_comparison(report, folder_);
    if (!written.ok()) return fail(ExitCode::kOutput, written.message());
    console_.say(fmt::format("results in {0}: comparison.html shows them", folder_));
    return ExitCode::kSuccess;
  }

 private:
  ExitCode prove_equality() {
    const EqualityOutcome outcome = check_equality(base_, folder_ + "/equality", run_job_);
    if (outcome.exit != ExitCode::kSuccess) return fail(outcome.exit, outcome.line);
    console_.say(outcome.line);
    if (compresses(base_) && job_.option != "compress") {
      console_.say(fmt::format("--compress={}, in all modes that have it", to_string(base_.compress)));
    }
    return ExitCode::kSuccess;
  }

  ExitCode measure(const ComparedRun& run, const std::string& output, ComparedRow& to) {
    RunConfig config = run.config;
    config.output = output;
    config.repeat = 1;
    const JobResult result = run_job_(config);
    if (result.exit != ExitCode::kSuccess) return fail(result.exit, run.label + ": " + result.verdict);
    to.rounds.push_back(result.reports.front());
    to.evals.push_back(result.evals.front());
    to.seeds.push_back(config.seed);
    to.folders.push_back(output);
    to.rate = result.config.learning_rate;
    to.parameters = result.facts.parameters;
    const RunReport& report = result.reports.front();
    console_.say(fmt::format("{:<22} {:>12.0f} samples/s  accuracy {}", run.label,
                             report.samples_per_second.value_or(0),
                             report.final_test_accuracy ? fmt::format("{:.4f}", *report.final_test_accuracy)
                                                        : std::string("not evaluated")));
    return ExitCode::kSuccess;
  }

  ExitCode fail(ExitCode exit, const std::string& line) {
    console_.warn("run_experiment: " + line);
    return exit;
  }

  const ComparisonJob& job_;
  const RunConfig& base_;  // of job_
  const JobRunner& run_job_;
  const std::string folder_;
  Console console_;
};

}  // namespace

ExitCode compare(const ComparisonJob& job, const JobRunner& runner) { return Comparison(job, runner).run(); }

}  // namespace syncopate::experiments
