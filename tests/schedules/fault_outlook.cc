#include "tests/schedules/fault_outlook.h"

#include <algorithm>
#include <map>

#include "experiments/config/rules/fault_rules.h"

namespace syncopate::experiments {
namespace {

// A part of the timeout, of which half counts as a failure.
constexpr double kOutlastedSilence = 0.45;

bool is_of_evaluator(const Fault& fault) { return fault.target.role == FaultRole::kEvaluator; }

}  // namespace

FaultOutlook::FaultOutlook(const DrawnSchedule& schedule)
    : scene_(fault_scene_of(schedule.run, schedule.total_steps)),
      drawn_(schedule.run.faults.draw(schedule.run.seed, scene_)) {}

bool FaultOutlook::is_outlasted() const {
  return drawn_.churns.empty() && seconds(silence()) < kOutlastedSilence * seconds(scene_.timeout) &&
         spares_all_that_are_killed();
}

std::optional<Duration> FaultOutlook::longest_silence() const {
  const bool holds_back = std::ranges::any_of(drawn_.faults, [](const Fault& fault) {
    return fault.kind == FaultKind::kDelay || fault.kind == FaultKind::kReorder || is_of_evaluator(fault);
  });
  return is_outlasted() && !holds_back ? std::optional(silence()) : std::nullopt;
}

Duration FaultOutlook::silence() const {
  Duration sum{};
  for (const Fault& fault : drawn_.faults) {
    const bool silences = fault.kind == FaultKind::kStop || fault.kind == FaultKind::kCut;
    if (silences && !is_of_evaluator(fault)) sum += fault.length;
  }
  return sum;
}

bool FaultOutlook::spares_all_that_are_killed() const {
  int workers = 0;
  std::map<int, int> servers;  // with their standbys, by rank
  for (const Fault& fault : drawn_.faults) {
    if (fault.kind != FaultKind::kKill || is_of_evaluator(fault)) continue;
    ++(fault.target.role == FaultRole::kWorker ? workers : servers[*fault.target.rank]);
  }
  const bool one_of_each = std::ranges::all_of(servers, [](const auto& killed) { return killed.second == 1; });
  return workers <= scene_.workers_to_spare && (servers.empty() || (scene_.spares_servers && one_of_each));
}

}  // namespace syncopate::experiments
