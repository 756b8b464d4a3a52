#include "experiments/run/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/process/data_of.h"
#include "experiments/report/comparison_files.h"
#include "experiments/report/comparison_text.h"
#include "experiments/run/console.h"

namespace syncopate::experiments {
namespace {

// Long enough for a difference in data order or update rule to show, short enough not to be noticed.
constexpr std::int64_t kEqualitySteps = 50;
// Of relative distances. Batches of one sample more or less come to 2e-4 or more; rounding to 1e-5 at most, and to a
// thousandth of that where training meets none of the following.
constexpr double kEqualityTolerance = 5e-5;
// Of the learning rate. At its full size training magnifies rounding beyond any tolerance now and then: a ReLU whose
// input is within rounding of zero is on in one mode and off in another, and adam divides a gradient that is nothing
// but rounding by its own size. At this part of it weights still move by far more than the tolerance.
constexpr double kEqualityRate = 0.01;
constexpr const char* kSynchronousModes = "local,allreduce,ps:sync";
// Of models with batch norm: one worker's moments are those of its own batch, and local has all workers' in one.
constexpr const char* kModesOfTheSameBatches = "allreduce,ps:sync";

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
    const ExitCode fair = check_equality();
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
  ExitCode check_equality() {
    RunConfig shared = base_;
    shared.epochs = 0;
    shared.steps = kEqualitySteps;
    shared.repeat = 1;
    shared.warmup_steps = 0;
    shared.target_accuracy = 0;
    shared.stragglers = {};                       // who is slow changes no weight
    shared.shape.reset();                         // nor does how fast bytes come
    shared.backup_workers = 0;                    // with them, sync takes other gradients each time
    shared.precision = worker::Precision::kFp32;  // rounding of factors would be magnified as that of sums is
    shared.compress = {};                         // what a codec loses is no rounding of sums
    shared.learning_rate = kEqualityRate * resolve(base_, "").learning_rate;
    const Result<ParamLayout> local_layout = local_state_layout_of(base_);
    if (!local_layout.ok()) return fail(exit_code_of(local_layout.status()), local_layout.status().message());
    const bool with_local = local_layout->size() == 0;
    const Result<std::vector<ComparedRun>> runs =
        comparison_runs(shared, with_local ? kSynchronousModes : kModesOfTheSameBatches);
    if (!runs.ok()) return fail(ExitCode::kUsage, runs.status().message());
    std::vector<float> expected;
    double largest = 0;
    for (const ComparedRun& run : *runs) {
      RunConfig config = run.config;
      config.output = folder_ + "/equality/" + folder_of(run.label);
      const JobResult result = run_job_(config);
      if (result.exit != ExitCode::kSuccess) return fail(result.exit, result.verdict);
      if (expected.empty()) expected = result.weights;
      const double distance = relative_distance(expected, result.weights);
      largest = std::max(largest, distance);
      if (distance <= kEqualityTolerance) continue;
      return fail(
          ExitCode::kUnequal,
          fmt::format("{} does not follow the curve of {}: after {} steps the weights lie {:.2g} apart, at most "
                      "{:.0g} is rounding; a comparison would compare more than the mode",
                      run.label, runs->front().label, kEqualitySteps, distance, kEqualityTolerance));
    }
    const bool compressed = compresses(base_) || job_.option == "compress";
    console_.say(
        fmt::format("equality: {} follow the same curve{}; after {} steps the weights lie {:.1g} apart{}",
                    with_local ? "local, allreduce and ps sync" : "allreduce and ps sync",
                    compressed ? " without --compress" : "", kEqualitySteps, largest,
                    with_local ? "" : "; local is left out, whose batch norms see the batches of all workers as one"));
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

double relative_distance(const std::vector<float>& first, const std::vector<float>& second) {
  if (first.size() != second.size()) return std::numeric_limits<double>::infinity();
  double difference = 0, length = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    difference += std::pow(static_cast<double>(first[i]) - second[i], 2);
    length += std::pow(static_cast<double>(first[i]), 2);
  }
  const double distance = length > 0 ? std::sqrt(difference / length) : std::sqrt(difference);
  return std::isfinite(distance) ? distance : std::numeric_limits<double>::infinity();
}

}  // namespace syncopate::experiments
