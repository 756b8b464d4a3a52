#include "tests/schedules/drawn_schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>
#include <utility>

#include "experiments/cluster/plan/placement.h"
#include "experiments/cluster/process/data_of.h"
#include "experiments/config/command_line.h"
#include "experiments/config/rules/fault_rules.h"
#include "tests/schedules/drawn_flags.h"
#include "worker/data/batch_loader.h"

namespace syncopate::experiments {
namespace {

constexpr std::uint64_t kMostAttempts = 1000;

// Returns what run_experiment would make of these flags.
Result<DrawnSchedule> resolve_flags(std::vector<std::string> flags, const std::string& data_directory) {
  const std::string data_flag = "--data-dir=" + data_directory;
  std::vector<const char*> words{"run_experiment"};
  for (const std::string& flag : flags) words.push_back(flag.c_str());
  words.push_back(data_flag.c_str());
  SYNCOPATE_ASSIGN_OR_RETURN(const CommandLine line, parse_command_line(static_cast<int>(words.size()), words.data()));
  DrawnSchedule schedule{.flags = std::move(flags)};
  SYNCOPATE_ASSIGN_OR_RETURN(schedule.run, resolve_on(Machines(Machine{}), line.config, "schedule"));
  const ResolvedRun& run = schedule.run;
  SYNCOPATE_RETURN_IF_ERROR(check_effect(line.given, {run}));
  SYNCOPATE_ASSIGN_OR_RETURN(schedule.layout, layout_of(run));
  SYNCOPATE_ASSIGN_OR_RETURN(const ParamLayout local_layout, local_state_layout_of(run));
  schedule.local_state_size = local_layout.size();
  const worker::BatchOrder order{
      .dataset_size = run.train_samples, .batch_size = run.batch_size, .workers = run.workers};
  schedule.total_steps = total_steps_of(run, order.steps_per_epoch());
  SYNCOPATE_RETURN_IF_ERROR(validate_faults(run, schedule.total_steps));
  return schedule;
}

}  // namespace

std::string DrawnSchedule::command() const { return fmt::format("./run_experiment {}", fmt::join(flags, " ")); }

DrawnSchedule draw_schedule(std::uint64_t seed, const std::string& data_directory) {
  for (std::uint64_t attempt = 0; attempt < kMostAttempts; ++attempt) {
    Result<DrawnSchedule> schedule = resolve_flags(draw_flags(seed, attempt), data_directory);
    if (!schedule.ok()) continue;
    schedule->seed = seed;
    return std::move(*schedule);
  }
  throw std::logic_error(fmt::format("seed {}: the rules have refused all that was drawn", seed));
}

DrawnSchedule without_faults(DrawnSchedule schedule) {
  schedule.run.faults = FaultSchedule();
  return schedule;
}

DrawnSchedule plain(DrawnSchedule schedule) {
  schedule = without_faults(std::move(schedule));
  ResolvedRun& run = schedule.run;
  run.stragglers = worker::Stragglers();
  run.replicas = 0;
  run.elastic = false;
  run.respawn_seconds.reset();
  run.network = simulation::NetworkModel::kFifo;
  run.timeout_seconds = 60;
  run.overlap = false;
  run.overlap_forward = false;
  // By the link's speed the size of a bucket chooses its schedule.
  if (run.collective != CollectiveKind::kBySize && run.mode != Mode::kLocal) run.shape = usual_simulated_link();
  return schedule;
}

}  // namespace syncopate::experiments
