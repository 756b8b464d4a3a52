#include "experiments/lab/run/carry_out.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "experiments/cluster/coordinator/host_runtime.h"
#include "experiments/cluster/simulated/simulated_cluster.h"
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

std::string milliseconds_text(Duration duration) { return fmt::format("{:.3g} ms", seconds(duration) * 1e3); }

// Returns how long a worker computes, and says in `facts` where that comes from.
Result<ComputeTimes> compute_times_of(const RunToCarryOut& run, SoloTimes& solo, SimulationFacts& facts) {
  if (const std::optional<Duration> step = run.config.compute.step) {
    facts.compute = fmt::format("{} a step, as given, a third of it forward", milliseconds_text(*step));
    return divided(*step, run.layout);
  }
  SYNCOPATE_ASSIGN_OR_RETURN(ComputeTimes times, solo.of(run.config));
  facts.compute = fmt::format("{} a step, {} of it forward, measured on this machine, alone, before its first run",
                              milliseconds_text(times.step()), milliseconds_text(times.forward));
  return times;
}

Result<RunOutcome> run_simulated(const RunToCarryOut& run, SoloTimes& solo, RunObserver& observer,
                                 Interrupts& interrupts, SimulationFacts& facts) {
  if (run.config.mode != Mode::kLocal) facts.network = name_of(run.config.network);
  SYNCOPATE_ASSIGN_OR_RETURN(const ComputeTimes times, compute_times_of(run, solo, facts));
  const SteadyClock clock;
  const TimePoint begin = clock.now();
  Result<RunOutcome> outcome =
      simulate(run.config, run.plan, run.options, times, run.log_directory, observer, interrupts);
  facts.wall_seconds += seconds(clock.now() - begin);
  return outcome;
}

}  // namespace

Result<RunOutcome> carry_out(const RunToCarryOut& run, SoloTimes& solo, RunObserver& observer, Interrupts& interrupts,
                             std::optional<SimulationFacts>& facts) {
  if (run.config.cluster == ClusterKind::kReal) return run_on_hosts(run, observer, interrupts);
  if (!facts) facts.emplace();
  return run_simulated(run, solo, observer, interrupts, *facts);
}

}  // namespace syncopate::experiments
