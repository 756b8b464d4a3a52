#include "experiments/lab/run/run_job.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "common/os/resource_limits.h"
#include "common/step_file.h"
#include "common/text/format.h"
#include "common/text/number.h"
#include "experiments/checkpoint/checkpoint_store.h"
#include "experiments/checkpoint/run_facts.h"
#include "experiments/cluster/host/environment.h"
#include "experiments/cluster/plan/descriptor_need.h"
#include "experiments/cluster/process/batch_order_of.h"
#include "experiments/cluster/process/data_of.h"
#include "experiments/cluster/process/part_of.h"
#include "experiments/config/evaluation_points.h"
#include "experiments/config/rules/config_rules.h"
#include "experiments/config/rules/fault_rules.h"
#include "experiments/lab/board/run_boards.h"
#include "experiments/lab/report/kept_results.h"
#include "experiments/lab/report/machine_state.h"
#include "experiments/lab/report/results_writer.h"
#include "experiments/lab/report/run_report.h"
#include "experiments/lab/report/sharding_report.h"
#include "experiments/lab/report/summary_text.h"
#include "experiments/lab/run/carry_out.h"
#include "experiments/lab/run/data_facts.h"
#include "experiments/lab/run/recorder.h"
#include "experiments/lab/run/resumption.h"
#include "experiments/lab/run/run_environment.h"
#include "experiments/lab/run/run_prediction.h"
#include "worker/data/batch_loader.h"
#include "worker/data/held_out.h"
#include "worker/work.h"

namespace syncopate::experiments {
namespace {

// Returns an id that is unique on this host, and valid in names of files and sockets.
std::string run_id_of(const ResolvedRun& config, int repeat) {
  return fmt::format("{}-{}-{}", std::filesystem::path(config.output).filename().string(), getpid(), repeat);
}

// Checks that the initial weights can pass an emulated link before the processes that wait for them give up.
Status check_link(const ResolvedRun& config, const ParamLayout& layout) {
  if (!config.shape || config.workers == 1) return {};
  const std::size_t bytes = layout.dense().size() * sizeof(float);
  const double least = seconds(config.shape->time_of(bytes));
  if (least < config.timeout_seconds) return {};
  return Status::invalid_argument(
      fmt::format("--shape={}: the {} of initial weights alone take {} on this link, and --timeout={:g} ends every "
                  "wait; use a larger --timeout, a faster link or a smaller model",
                  config.shape->to_string(), format_bytes(static_cast<double>(bytes)), format_duration(least),
                  config.timeout_seconds));
}

Status check_trace(const ResolvedRun& config, std::int64_t total_steps) {
  if (!config.trace || config.trace->first.value_or(0) < total_steps) return {};
  return Status::invalid_argument(fmt::format("--trace={}: the run's steps are 0 to {}; name some of these",
                                              config.trace->to_string(), total_steps - 1));
}

// A program of the person's own alone knows its model, and how long it trains.
JobFacts facts_of_command() { return {.layout = {}, .steps_per_epoch = 0, .total_steps = 0}; }

// A fragment that meets by itself is of whole tensors.
Status check_fragments(const ResolvedRun& config, const ParamLayout& layout) {
  const auto tensors = static_cast<std::int64_t>(layout.tensors().size());
  if (outer_options_of(config).fragments <= tensors) return {};
  return Status::invalid_argument(
      fmt::format("--sync-fragments={}: {} has {} tensors, and a fragment is of whole ones; use at most {}",
                  config.sync_fragments, config.model, tensors, tensors));
}

// Lays out the model and counts the steps, so that an impossible config fails here rather than in every process.
Result<JobFacts> prepare(const ResolvedRun& config, const Result<DataFacts>& data) {
  if (!data.ok()) return data.status();
  const worker::BatchOrder order = batch_order_of(config, data->train_samples);
  SYNCOPATE_RETURN_IF_ERROR(worker::check_fills_a_batch(order));
  SYNCOPATE_ASSIGN_OR_RETURN(const ParamLayout layout, layout_of(config));
  SYNCOPATE_RETURN_IF_ERROR(check_link(config, layout));
  SYNCOPATE_RETURN_IF_ERROR(check_division(config));
  SYNCOPATE_RETURN_IF_ERROR(check_fragments(config, layout));
  SYNCOPATE_ASSIGN_OR_RETURN(const ParamLayout local_layout, local_state_layout_of(config));
  const std::int64_t total_steps = total_steps_of(config, order.steps_per_epoch());
  SYNCOPATE_RETURN_IF_ERROR(validate_faults(config, total_steps));
  SYNCOPATE_RETURN_IF_ERROR(check_trace(config, total_steps));
  std::vector<std::string> notes = data->notes;
  if (std::string left_out = left_out_text(config, data->train_samples); !left_out.empty()) {
    notes.push_back(std::move(left_out));
  }
  return JobFacts{
      .layout = layout,
      .local_layout = local_layout,
      .steps_per_epoch = order.steps_per_epoch(),
      .total_steps = total_steps,
      .train_samples = data->train_samples,
      .data_sum = data->sum,
      .data = data->description,
      .notes = std::move(notes),
      .best_loss = data->best_loss,
      .guessing = data->guessing,
      .samples_per_epoch = order.drop_last ? order.steps_per_epoch() * order.global_batch_size() : data->train_samples};
}

void fail(JobResult& result, ExitCode exit, const std::string& verdict) {
  if (result.exit != ExitCode::kSuccess) return;  // the first failure is the one that counts
  result.exit = exit;
  result.verdict = verdict;
  result.facts.outcome = verdict;
}

std::optional<CheckpointKeeperOptions> checkpoints_of(const ResolvedRun& config, const JobFacts& job,
                                                      const std::string& run_id, const Resumption& resumption) {
  if (!config.checkpoint_every) return std::nullopt;
  return CheckpointKeeperOptions{.folder = config.output + "/checkpoints",
                                 .interval = *config.checkpoint_every,
                                 .together = moves_together(config),
                                 .first_step = job.first_step,
                                 .seconds_before = job.seconds_before,
                                 .keep = config.keep,
                                 .run_id = run_id,
                                 .facts = facts_of(config, job),
                                 .key = resumption.key};
}

EvaluationRecord evaluations_of(const ResolvedRun& config, const JobFacts& job, const Recorder& recorder,
                                const RunOutcome& outcome) {
  const EvaluationPoints points(config.evaluate_every, config.target_accuracy > 0,
                                {.steps_per_epoch = job.steps_per_epoch, .total_steps = job.total_steps});
  const RunReport report = recorder.report();
  // As far as the run has come, according to the last records.
  const std::int64_t steps = std::min(job.total_steps, recorder.furthest_step());
  const std::int64_t passed = points.passed(static_cast<double>(steps), from_seconds(report.training_seconds)) -
                              points.passed(static_cast<double>(job.first_step), {});
  const std::int64_t evaluated = recorder.points_evaluated();
  return {.every = points.to_text(),
          .weights = evaluated_weights(config),
          .points = std::max(evaluated, passed),
          .evaluated = evaluated,
          .final_evaluated = outcome.is_final_evaluated && !outcome.verdict,
          .lost_evaluator = outcome.lost_evaluator,
          .is_cut_short = outcome.verdict.has_value()};
}

// Returns the outcome of a run that --stop-at-target has ended.
std::string stopped_text(const ResolvedRun& config, const JobFacts& job, const RunReport& report) {
  const auto asked = static_cast<double>((job.total_steps - job.first_step) * config.workers * config.batch_size);
  return fmt::format(
      "stopped at the target: training ended after {1} of {2} samples, with --target-accuracy={0:g} reached",
      config.target_accuracy, format_count(static_cast<double>(report.total_samples)), format_count(asked));
}

// Warns, after a run that ended well, of faults that were not injected, which its figures do not show.
void warn_of_faults_not_done(std::span<const FaultRecord> faults, Console& console) {
  for (const FaultRecord& fault : faults) {
    if (!fault.at) console.warn(fmt::format("warning: --fault={}: {}", fault.fault, fault.outcome));
  }
}

// Called if the last evaluation was of earlier weights than the final ones.
void forget_final_figures(RunReport& report) {
  report.final_test_accuracy.reset();
  report.final_test_loss.reset();
  report.final_figures = {};
  report.final_validation.reset();
}

// Returns the number of workers on this host's processors: one whose GPU computes gives it its work from a core.
int workers_on_own_cores(const ResolvedRun& config, const JobPlan& plan) {
  const bool are_all_here = config.cluster == ClusterKind::kNamespaces;
  return static_cast<int>(std::ranges::count_if(plan.processes, [&](const ProcessSpec& process) {
    return process.role == Role::kWorker && (are_all_here || !process.remote);
  }));
}

// Processes are told which steps are traced.
void settle_trace(const JobFacts& job, ResolvedRun& config) {
  // How many steps a program of the person's own makes, it alone knows.
  const std::int64_t end = runs_command(config) ? std::numeric_limits<std::int64_t>::max() : job.total_steps;
  const TraceSteps steps = config.trace->steps_in(job.first_step, end, config.warmup_steps);
  config.trace->first = steps.first;
}

// Processes are told after how many steps, which a number of epochs is for them. A checkpoint is of a meeting of
// workers that make steps of their own.
void settle_checkpoints(const JobFacts& job, ResolvedRun& config) {
  const bool meets = has_servers(config) && config.consistency.updates_together();
  config.checkpoint_every =
      config.checkpoint_every->in_steps(job.steps_per_epoch, meets ? config.consistency.period() : 1);
}

// Moves what a program of the person's own has told of its model to where it is read. What it did not say is not shown.
void take_told(RunFacts& facts, RunReport& report) {
  for (auto* figure :
       {&report.first_train_loss, &report.final_train_loss, &report.final_test_loss, &report.final_test_accuracy}) {
    if (*figure && std::isnan(**figure)) figure->reset();
  }
  const auto parameters = facts.of_workers.extract(kParametersFact);
  if (!parameters.empty()) facts.parameters = parse_number<std::int64_t>(parameters.mapped()).value_or(0);
}

// Whoever reads the metrics is on this machine, not among hosts of namespaces.
Result<std::unique_ptr<MetricsService>> start_metrics(const ResolvedRun& config, const Survey& survey) {
  const NamespaceHosts::Outside outside(survey.namespaces.get());
  return MetricsService::start(config);
}

RunMetrics* metrics_of(const std::unique_ptr<MetricsService>& service) {
  return service == nullptr ? nullptr : &service->metrics();
}

// Returns what a run that has become NaN can go on from.
std::string way_out(const ResolvedRun& config, const RunOutcome& outcome) {
  if (outcome.verdict->code != ExitCode::kNotFinite || !config.checkpoint_every) return {};
  const std::optional<std::string> finite = CheckpointStore(config.output + "/checkpoints").newest_finite();
  return finite ? fmt::format("; the last finite checkpoint is {}", *finite) : "; no checkpoint was finite";
}

void run_repeat(const JobFacts& job, const Survey& survey, const Resumption& resumption, int repeat,
                ResultsWriter& results, RunMetrics* metrics, SoloTimes& solo, Interrupts& interrupts, Console& console,
                JobResult& result) {
  ResolvedRun config = result.config;
  config.seed += static_cast<std::uint64_t>(repeat);
  if (repeat > 0) config.trace.reset();
  if (config.trace) settle_trace(job, config);
  if (config.checkpoint_every) settle_checkpoints(job, config);
  const Cluster cluster = cluster_of(config, survey);
  const JobPlan plan = make_plan(config, run_id_of(config, repeat), cluster);
  Result<RunBoards> boards = RunBoards::create(config, metrics, repeat, job.total_steps, job.first_step);
  if (!boards.ok()) return fail(result, exit_code_of(boards.status()), boards.status().message());
  Recorder recorder(config, job, results, console, boards->watchers());
  const CoordinatorOptions options{.total_steps = job.total_steps,
                                   .batches_done = job.batches_done,
                                   .local_state_size = job.local_layout.size(),
                                   .checkpoints = checkpoints_of(config, job, plan.run_id, resumption),
                                   .resume = resumption.folder,
                                   .resume_digest = resumption.manifest_digest};
  const MachineReading before = read_machine();
  const Result<RunOutcome> outcome = carry_out({.config = config,
                                                .plan = plan,
                                                .options = options,
                                                .layout = job.layout,
                                                .cluster = cluster,
                                                .log_directory = results.directory() + "/logs",
                                                .namespaces = survey.namespaces.get()},
                                               solo, recorder, interrupts, result.facts.simulation);
  const Status finished = recorder.finish();
  if (!outcome.ok()) return fail(result, exit_code_of(outcome.status()), outcome.status().message());
  if (config.trace) {
    const Result<TraceFacts> trace = recorder.write_trace({.run = plan.run_id,
                                                           .steps = traced_steps_of(config),
                                                           .is_virtual = config.cluster == ClusterKind::kSimulated,
                                                           .clock_uncertainty = outcome->clock_uncertainty});
    if (trace.ok()) result.facts.trace = *trace;
    if (!trace.ok()) console.warn(fmt::format("warning: {}", trace.status().message()));
    if (trace.ok() && trace->events == 0 && runs_command(config) && !outcome->verdict) {
      console.warn(
          fmt::format("warning: --trace={}: the program has not told of steps {} to {}: name some that it makes",
                      result.config.trace->to_string(), trace->steps.first, trace->steps.last));
    }
  }
  result.facts.checkpoints = outcome->checkpoints;
  result.facts.events.insert(result.facts.events.end(), outcome->reports.begin(), outcome->reports.end());
  for (FaultRecord fault : outcome->faults) {
    if (fault.at) fault.recovery = recovery_after(*fault.at, recorder.workers());
    fault.repeat = repeat;
    result.facts.faults.push_back(std::move(fault));
  }
  result.facts.of_workers = recorder.facts();
  for (const auto& [process, count] : outcome->rejected_connections)
    result.facts.rejected_connections[process] += count;
  result.facts.clock_uncertainty = outcome->clock_uncertainty;
  result.facts.peak_memory = outcome->peak_memory;
  result.reports.push_back(recorder.report());
  result.facts.seeds.push_back(config.seed);
  result.reports.back().servers = outcome->servers;
  result.reports.back().memory = memory_figures(outcome->peak_memory);
  if (!result.facts.simulation) {
    result.reports.back().machine = load_between(before, read_machine(), workers_on_own_cores(config, plan));
  }
  if (is_profile(config)) result.reports.back().first_train_loss = result.reports.back().final_train_loss = {};
  if (runs_command(config)) {
    take_told(result.facts, result.reports.back());
  } else if (has_evaluator(config)) {
    result.facts.evaluations = evaluations_of(config, job, recorder, *outcome);
  }
  if (!outcome->is_final_evaluated) forget_final_figures(result.reports.back());
  if (!result.facts.health) result.facts.health = outcome->health;
  if (job.guessing) result.reports.back().test_labels = job.guessing->labels;
  if (!runs_command(config)) {
    const std::vector<std::string> words = learning_words(result.reports.back(), job.guessing);
    result.facts.events.insert(result.facts.events.end(), words.begin(), words.end());
  }
  result.evals.push_back(recorder.evals());
  result.weights = recorder.final_weights();
  result.rows = recorder.final_rows();
  if (outcome->verdict) return fail(result, outcome->verdict->code, outcome->verdict->line + way_out(config, *outcome));
  if (outcome->stopped_at_target) result.facts.outcome = stopped_text(config, job, result.reports.back());
  warn_of_faults_not_done(outcome->faults, console);
  if (!finished.ok()) return fail(result, ExitCode::kOutput, finished.message());
  if (result.weights.empty() && has_evaluator(config))
    fail(result, ExitCode::kInternal, "no worker handed in final weights");
}

}  // namespace

JobResult run_job(const ResolvedRun& config, const Survey& survey, SoloTimes& solo, Interrupts& interrupts,
                  Console& console) {
  JobResult result;
  result.config = config;
  result.facts.run_id = std::filesystem::path(result.config.output).filename().string();
  Result<JobFacts> job = runs_command(config) ? facts_of_command() : prepare(config, data_facts_of(config));
  Result<Resumption> resumption =
      job.ok() ? find_resumed(result.config, *job, result.facts, console) : Result<Resumption>(job.status());
  if (!resumption.ok()) {
    fail(result, exit_code_of(resumption.status()), resumption.status().message());
    return result;
  }
  const Cluster cluster = cluster_of(result.config, survey);
  const JobPlan plan = make_plan(result.config, result.facts.run_id, cluster);
  if (const Status status = check_descriptors(result.config, plan, descriptor_limit(), geteuid() == 0); !status.ok()) {
    fail(result, exit_code_of(status), status.message());
    return result;
  }
  const Result<std::unique_ptr<MetricsService>> metrics = start_metrics(result.config, survey);
  if (!metrics.ok()) {
    fail(result, exit_code_of(metrics.status()), metrics.status().message());
    return result;
  }
  Result<ResultsWriter> results = ResultsWriter::create(result.config, environment_of(plan, cluster, survey));
  if (!results.ok()) {
    fail(result, exit_code_of(results.status()), results.status().message());
    return result;
  }
  if (const Status carried = take_over(result.config, *job, *resumption); !carried.ok()) {
    fail(result, exit_code_of(carried), carried.message());
    return result;
  }
  if (*metrics != nullptr) console.say((*metrics)->text());
  result.facts.parameters = static_cast<std::int64_t>(job->layout.parameter_count());
  result.facts.steps_per_epoch = job->steps_per_epoch;
  result.facts.straggler = result.config.stragglers.to_string();
  result.facts.best_loss = job->best_loss;
  result.facts.data = job->data;
  result.facts.link = describe_link(result.config);
  for (const std::string& caution : cautions(result.config)) {
    console.say("warning: " + caution);
    result.facts.events.push_back(caution);
  }
  for (const std::string& note : job->notes) {
    console.say(note);
    result.facts.events.push_back(note);
  }
  if (reports_sharding(result.config)) {
    result.facts.sharding = report_sharding(result.config, job->layout);
    console.say(to_text(*result.facts.sharding));
  }
  if (const std::string stages = stages_text(result.config); !stages.empty()) console.say(stages);
  for (int repeat = 0; repeat < result.config.repeat && result.exit == ExitCode::kSuccess; ++repeat) {
    if (result.config.repeat > 1) console.say(fmt::format("repeat {} of {}", repeat + 1, result.config.repeat));
    run_repeat(*job, survey, *resumption, repeat, *results, metrics_of(*metrics), solo, interrupts, console, result);
  }
  const Status written = results->write_summary(result.reports, result.facts);
  if (!written.ok()) fail(result, ExitCode::kOutput, written.message());
  return result;
}

bool has_diverged(const JobResult& result) {
  const auto is_bad = [](const RunReport& report) {
    return report.final_test_loss && !std::isfinite(*report.final_test_loss);
  };
  return result.exit == ExitCode::kNotFinite || (result.facts.health && result.facts.health->left_out == 0) ||
         std::ranges::any_of(result.reports, is_bad);
}

Result<std::string> dry_run_text(const ResolvedRun& config, const Survey& survey) {
  JobResult dry;
  dry.config = config;
  const JobPlan plan = make_plan(config, run_id_of(config, 0), cluster_of(config, survey));
  SYNCOPATE_RETURN_IF_ERROR(check_descriptors(config, plan, descriptor_limit(), geteuid() == 0));
  if (!resumes_here(config)) SYNCOPATE_RETURN_IF_ERROR(check_output(config));
  std::string text = to_text(plan, config.cluster == ClusterKind::kSimulated ? "" : own_program());
  for (const std::string& caution : cautions(config)) text += "\nwarning: " + caution + "\n";
  if (runs_command(config)) return text;
  // A data set that is generated is not generated for this: its size is known.
  const std::int64_t trained = worker::trained_samples(config.train_samples, config.validation.value_or(0));
  Result<JobFacts> job =
      generates_data(config) ? prepare(config, DataFacts{trained}) : prepare(config, data_facts_of(config));
  // Data may still have to be copied here.
  if (job.status().code() == Code::kNotFound) {
    return text + fmt::format("{}the run would end with exit code {}: {}\n", kDryRunHindrance,
                              static_cast<int>(exit_code_of(job.status())), job.status().message());
  }
  if (!job.ok()) return job.status();
  Console console;
  SYNCOPATE_RETURN_IF_ERROR(find_resumed(config, *job, dry.facts, console).status());
  if (const std::string stages = stages_text(config); !stages.empty()) text += "\n" + stages;
  if (!reports_sharding(config)) return text;
  return text + "\n" + to_text(report_sharding(config, job->layout));
}

}  // namespace syncopate::experiments
