#include "experiments/lab/run/simulate_script.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/step_file.h"
#include "experiments/cluster/script/script_ranks.h"
#include "experiments/cluster/script/script_worker.h"
#include "experiments/cluster/simulated/simulated_cluster.h"
#include "experiments/lab/run/simulated_compute_of.h"
#include "experiments/lab/run/survey.h"

namespace syncopate::experiments {
namespace {

// As many steps as no script makes, and positions in the job still can be multiplied with.
constexpr std::int64_t kWithoutEnd = std::int64_t{1} << 40;
// Steps after which workers ask whether there is another epoch, which a script has none of.
constexpr std::int64_t kStepsAnEpoch = 1 << 16;

// Adds what the script says of its steps, and of its model between them.
class ScriptObserver final : public RunObserver {
 public:
  ScriptObserver(RunObserver& observer, ScriptRanks& ranks) : observer_(observer), ranks_(ranks) {}

  void on_training_begins(TimePoint now) override {
    origin_ = now;
    observer_.on_training_begins(now);
  }
  void on_steps(int worker, std::span<const StepRecord> steps) override {
    std::vector<StepRecord> told(steps.begin(), steps.end());
    for (StepRecord& step : told) {
      const ScriptRanks::Learnt learnt = ranks_.learnt(worker, step.step);
      step.loss = learnt.loss;
      step.accuracy = learnt.accuracy;
    }
    observer_.on_steps(worker, told);
  }
  void on_evaluation(const EvaluationResult&) override {}  // the run has none
  void on_final_weights(std::span<const float>, std::span<const float>, const TableKeys&) override {
  }  // the script has them
  void on_worker_lost(int rank) override { observer_.on_worker_lost(rank); }
  void on_worker_joined(int rank) override { observer_.on_worker_joined(rank); }
  void on_fact(const std::string& name, const std::string& value) override { observer_.on_fact(name, value); }
  void on_trace(const std::string& process, std::span<const TraceEvent> events, std::int64_t dropped) override {
    observer_.on_trace(process, events, dropped);
  }
  void on_report(const std::string& line) override { observer_.on_report(line); }
  Status on_tick(TimePoint now) override {
    tell_evaluations();
    ranks_.show_output(false);
    SYNCOPATE_RETURN_IF_ERROR(ranks_.failure());
    return observer_.on_tick(now);
  }

  // What was evaluated before training is of the initial weights.
  void tell_evaluations() {
    if (!origin_) return;
    for (EvaluationResult& evaluation : ranks_.take_evaluations()) {
      evaluation.taken = std::max(evaluation.taken, *origin_);
      observer_.on_evaluation(evaluation);
    }
  }

 private:
  RunObserver& observer_;
  ScriptRanks& ranks_;
  std::optional<TimePoint> origin_;
};

// What the script has asked for, as an option of the run.
ResolvedRun as_opened(ResolvedRun config, const ScriptOpening& opening) {
  ScriptModel script{.layout = opening.layout, .update = opening.options.optimizer};
  if (opening.takes_means) script.update.kind = OptimizerKind::kMean;
  config.script = std::make_shared<const ScriptModel>(std::move(script));
  if (has_servers(config)) {
    config.chunk_bytes = static_cast<std::int64_t>(opening.options.bucket_bytes);
  } else {
    config.bucket_bytes = static_cast<std::int64_t>(opening.options.bucket_bytes);
  }
  return config;
}

// The same as workers see it: a profile's, of which nothing is read and nothing evaluated.
ResolvedRun as_played(ResolvedRun config) {
  config.command.clear();
  config.model = std::string(kProfilePrefix) + "script";
  config.batch_size = 1;
  config.train_samples = kStepsAnEpoch * config.workers;
  config.steps = config.steps.value_or(kWithoutEnd);
  config.shuffle = worker::Shuffle::kOff;
  config.work = WorkDivision::kQuota;
  return config;
}

Status check_mode(const ResolvedRun& config, const ScriptOpening& opening) {
  if (has_servers(config) != opening.takes_means) return {};
  return Status::invalid_argument(fmt::format("the script trains by {}, and run_experiment asks for --mode={}",
                                              opening.takes_means ? "allreduce" : "parameter servers",
                                              name_of(config.mode)));
}

}  // namespace

Result<RunOutcome> simulate_script(const RunToCarryOut& run, SoloTimes& solo, RunObserver& observer,
                                   Interrupts& interrupts, SimulationFacts& facts) {
  const SteadyClock clock;
  const TimePoint begin = clock.now();
  if (is_distributed(run.config)) facts.network = name_of(run.config.network);
  const std::string program = own_program();
  SYNCOPATE_ASSIGN_OR_RETURN(
      const std::unique_ptr<ScriptRanks> ranks,
      ScriptRanks::start({run.config, run.plan, program, run.log_directory}, observer, interrupts));
  SYNCOPATE_ASSIGN_OR_RETURN(ScriptOpening opening, ranks->open());
  SYNCOPATE_RETURN_IF_ERROR(check_mode(run.config, opening));
  observer.on_fact(kParametersFact, fmt::to_string(opening.layout.parameter_count()));

  ResolvedRun config = as_opened(run.config, opening);
  config.timeout_seconds = simulated_timeout_of(config, opening.layout);
  if (config.timeout_seconds > run.config.timeout_seconds) facts.timeout = config.timeout_seconds;
  SYNCOPATE_ASSIGN_OR_RETURN(SimulatedCompute compute, simulated_compute_of(config, opening.layout, solo, facts));
  ScriptTraining training{.ranks = *ranks, .opening = std::move(opening), .times = {}, .steps = config.steps};
  if (!config.compute.is_solo()) training.times = compute.times;
  compute.own = [&](int rank, const Clock& virtual_clock, std::function<void(Duration)> sleep) {
    return std::make_unique<ScriptWorker>(training, rank, config.workers, virtual_clock, std::move(sleep));
  };
  const ResolvedRun played = as_played(config);
  const JobPlan plan = make_plan(played, run.plan.run_id, run.cluster);
  CoordinatorOptions options = run.options;
  options.total_steps = *played.steps;
  ScriptObserver told(observer, *ranks);
  Result<RunOutcome> outcome = simulate(played, plan, options, compute, run.log_directory, told, interrupts);
  facts.wall_seconds += seconds(clock.now() - begin);
  if (!outcome.ok()) return outcome;
  facts.events += outcome->simulated_events;
  const bool is_cut_short = outcome->verdict || !ranks->failure().ok() || config.steps;
  const Status closed = ranks->close(is_cut_short);
  told.tell_evaluations();
  const Status& ended = ranks->failure().ok() ? closed : ranks->failure();
  const bool is_cause = !ranks->failure().ok() || !outcome->verdict;
  if (!ended.ok() && is_cause) outcome->verdict = Verdict{exit_code_of(ended), ended.message()};
  return outcome;
}

}  // namespace syncopate::experiments
