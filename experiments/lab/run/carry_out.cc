#include "experiments/lab/run/carry_out.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/os/aligned_buffer.h"
#include "experiments/cluster/command/command_run.h"
#include "experiments/cluster/coordinator/host_runtime.h"
#include "experiments/cluster/simulated/simulated_cluster.h"
#include "experiments/lab/run/simulate_script.h"
#include "experiments/lab/run/simulated_compute_of.h"
#include "experiments/lab/run/survey.h"

namespace syncopate::experiments {
namespace {

std::unique_ptr<Launcher> launcher_of(const ResolvedRun& config) {
  return config.launcher == LauncherKind::kMpirun ? make_mpirun_launcher() : make_local_launcher();
}

// Returns the size of the largest message of a process: all weights, and the numbers of all rows.
std::int64_t largest_frame_of(const ParamLayout& layout) {
  constexpr std::size_t kBesides = std::size_t{64} << 20;
  return static_cast<std::int64_t>(kBesides + 2 * sizeof(float) * layout.parameter_count());
}

// Each run has a secret of its own.
Result<ListenOptions> listen_options_of(const ResolvedRun& config, const ParamLayout& layout) {
  SYNCOPATE_ASSIGN_OR_RETURN(const RunKeys keys, RunKeys::make());
  return ListenOptions{.keys = keys,
                       .address = spans_hosts(config) ? config.listen_address : "",
                       .largest_frame = largest_frame_of(layout)};
}

Result<RunOutcome> run_on_hosts(const RunToCarryOut& run, RunObserver& observer, Interrupts& interrupts) {
  SYNCOPATE_ASSIGN_OR_RETURN(ListenOptions listen, listen_options_of(run.config, run.layout));
  const std::unique_ptr<Launcher> launcher = launcher_of(run.config);
  SYNCOPATE_ASSIGN_OR_RETURN(
      const std::unique_ptr<ClusterRuntime> runtime,
      make_host_runtime(run.plan,
                        {.program = own_program(), .log_directory = run.log_directory, .listen = std::move(listen)},
                        *launcher, interrupts));
  return coordinate(run.config, run.plan, run.options, *runtime, observer);
}

// Sees a phantom's run as that of the whole model.
class WholeModelObserver final : public RunObserver {
 public:
  WholeModelObserver(RunObserver& observer, std::int64_t scale) : observer_(observer), scale_(scale) {}

  void on_training_begins(TimePoint now) override { observer_.on_training_begins(now); }
  void on_steps(int worker, std::span<const StepRecord> steps) override {
    std::vector<StepRecord> whole(steps.begin(), steps.end());
    for (StepRecord& step : whole) {
      step.sync.bytes_out *= scale_;
      step.sync.bytes_in *= scale_;
    }
    observer_.on_steps(worker, whole);
  }
  void on_evaluation(const EvaluationResult& result) override { observer_.on_evaluation(result); }
  // They are of the phantom, and all zero.
  void on_final_weights(std::span<const float>, std::span<const float>, const TableKeys&) override {}
  void on_worker_lost(int rank) override { observer_.on_worker_lost(rank); }
  void on_worker_joined(int rank) override { observer_.on_worker_joined(rank); }
  void on_fact(const std::string& name, const std::string& value) override { observer_.on_fact(name, value); }
  void on_trace(const std::string& process, std::span<const TraceEvent> events, std::int64_t dropped) override {
    std::vector<TraceEvent> whole(events.begin(), events.end());
    for (TraceEvent& event : whole) event.bytes *= scale_;
    observer_.on_trace(process, whole, dropped);
  }
  void on_fault() override { observer_.on_fault(); }
  void on_not_finite(std::int64_t step, const std::string& line) override { observer_.on_not_finite(step, line); }
  void on_report(const std::string& line) override { observer_.on_report(line); }
  Status on_tick(TimePoint now) override { return observer_.on_tick(now); }

 private:
  RunObserver& observer_;
  const std::int64_t scale_;
};

Result<RunOutcome> simulate_as_asked(const RunToCarryOut& run, const SimulatedCompute& compute, RunObserver& observer,
                                     Interrupts& interrupts) {
  if (!compute.phantom) {
    return simulate(run.config, run.plan, run.options, compute, run.log_directory, observer, interrupts);
  }
  const SharedZeros zeros(compute.phantom->layout.size());
  const ResolvedRun config = scaled_down(run.config, compute.scale());
  WholeModelObserver whole(observer, compute.scale());
  Result<RunOutcome> outcome = simulate(config, run.plan, run.options, compute, run.log_directory, whole, interrupts);
  if (!outcome.ok()) return outcome;
  for (auto& [rank, server] : outcome->servers) {
    server.bytes_in *= compute.scale();
    server.bytes_out *= compute.scale();
  }
  return outcome;
}

Result<RunOutcome> run_simulated(const RunToCarryOut& asked, SoloTimes& solo, RunObserver& observer,
                                 Interrupts& interrupts, SimulationFacts& facts) {
  ResolvedRun config = asked.config;
  config.timeout_seconds = simulated_timeout_of(config, asked.layout);
  if (config.timeout_seconds > asked.config.timeout_seconds) facts.timeout = config.timeout_seconds;
  const RunToCarryOut run{.config = config,
                          .plan = asked.plan,
                          .options = asked.options,
                          .layout = asked.layout,
                          .cluster = asked.cluster,
                          .log_directory = asked.log_directory,
                          .namespaces = asked.namespaces};
  if (is_distributed(run.config)) facts.network = name_of(run.config.network);
  SYNCOPATE_ASSIGN_OR_RETURN(const SimulatedCompute compute, simulated_compute_of(run.config, run.layout, solo, facts));
  const SteadyClock clock;
  const TimePoint begin = clock.now();
  Result<RunOutcome> outcome = simulate_as_asked(run, compute, observer, interrupts);
  facts.wall_seconds += seconds(clock.now() - begin);
  if (outcome.ok()) facts.events += outcome->simulated_events;
  return outcome;
}

}  // namespace

Result<RunOutcome> carry_out(const RunToCarryOut& run, SoloTimes& solo, RunObserver& observer, Interrupts& interrupts,
                             std::optional<SimulationFacts>& facts) {
  if (run.namespaces != nullptr && spans_hosts(run.config)) {
    SYNCOPATE_RETURN_IF_ERROR(run.namespaces->join(own_hosts_of(run.config), run.config.shape, run.config.fabric));
  }
  const bool is_simulated = run.config.cluster == ClusterKind::kSimulated;
  if (runs_command(run.config) && !is_simulated) {
    return run_command(run.config, run.plan, own_program(), run.log_directory, observer, interrupts);
  }
  if (!is_simulated) return run_on_hosts(run, observer, interrupts);
  if (!facts) facts.emplace();
  if (runs_command(run.config)) return simulate_script(run, solo, observer, interrupts, *facts);
  return run_simulated(run, solo, observer, interrupts, *facts);
}

}  // namespace syncopate::experiments
