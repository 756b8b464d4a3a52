#include "ps/policy/dynamic_bound.h"

#include <algorithm>

namespace syncopate::ps {

std::int64_t granted_pushes(const PushTimes& fastest, const PushTimes& slowest, std::int64_t most) {
  if (fastest.interval <= Duration() || slowest.interval <= Duration()) return 0;
  std::int64_t best = 0;
  Duration least = Duration::max();
  for (std::int64_t pushes = 0; pushes <= most; ++pushes) {
    const Duration ahead = fastest.latest + pushes * fastest.interval - slowest.latest;
    // The slowest worker's push that is predicted next to it, of those to come.
    const std::int64_t before = std::max<std::int64_t>(1, ahead / slowest.interval);
    const Duration distance = std::min(std::chrono::abs(ahead - before * slowest.interval),
                                       std::chrono::abs(ahead - (before + 1) * slowest.interval));
    if (distance >= least) continue;
    best = pushes;
    least = distance;
  }
  return best;
}

DynamicBound::DynamicBound(std::int64_t min, std::int64_t max, int workers)
    : min_(min), max_(max), workers_(static_cast<std::size_t>(workers)) {}

void DynamicBound::on_push(const Step& step, const WorkerClocks& clocks) {
  Worker& from = worker(step.worker);
  from.times.interval = from.has_pushed ? step.arrived - from.times.latest : Duration();
  from.times.latest = step.arrived;
  from.has_pushed = true;
  from.clock = step.clock;
  const std::int64_t slowest_clock = clocks.slowest();
  if (step.clock - slowest_clock <= min_ || step.clock <= from.granted_to) return;
  const Worker* slowest = nullptr;
  for (int other = 0; other < clocks.workers(); ++other) {
    if (!clocks.is_live(other)) continue;
    if (clocks.of(other) > step.clock) return;  // another one is the fastest
    const bool is_first = slowest == nullptr || worker(other).times.latest < slowest->times.latest;
    if (clocks.of(other) == slowest_clock && is_first) slowest = &worker(other);
  }
  if (slowest == nullptr) return;
  // The responses to this push and to those after it up to granted_to make room for as many more.
  from.granted_to = step.clock + granted_pushes(from.times, slowest->times, max_ - min_) - 1;
}

std::int64_t DynamicBound::of(int rank) const { return worker(rank).clock <= worker(rank).granted_to ? max_ : min_; }

}  // namespace syncopate::ps
