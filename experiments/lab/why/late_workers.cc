#include "experiments/lab/why/late_workers.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace syncopate::experiments {
namespace {

// Steps that nobody recorded, of all workers together, as where workers were lost: a file that skips more has no such
// steps.
constexpr std::size_t kMostGaps = 1000000;

// In milliseconds since training began.
double ms_of_end(const StepRecord& step) { return milliseconds(step.end.time_since_epoch()); }

Duration exchange_of(const StepRecord& step) { return step.sync.exposed_wait + step.sync.optimizer; }

// When the worker had finished its gradients.
double arrival_of(const StepRecord& step, const RunPace& pace) {
  return ms_of_end(step) - (pace.waits_in_forward ? 0 : milliseconds(exchange_of(step)));
}

// When it began to wait.
double wait_begin_of(const StepRecord& step, const RunPace& pace) {
  const Duration before = pace.waits_in_forward ? step.forward + step.backward + step.straggle : Duration::zero();
  return ms_of_end(step) - milliseconds(exchange_of(step) + before);
}

}  // namespace

double computing_without_core_ms(const StepRecord& step) {
  const Duration computing = step.forward + step.backward - step.sync.backward_codec;
  return milliseconds(std::min(step.compute_core_wait, std::max(Duration::zero(), computing)));
}

double woken_late_ms(const StepRecord& step) {
  const Duration late = step.core_wait.value_or(Duration::zero()) - step.compute_core_wait;
  return milliseconds(std::clamp(late, Duration::zero(), std::max(Duration::zero(), step.sync.exposed_wait)));
}

double computed_ms(const StepRecord& step) {
  return milliseconds(step.forward + step.backward - step.sync.backward_codec) - computing_without_core_ms(step);
}

LateWorkers::LateWorkers(const RecordedSteps& recorded, const RunPace& pace) : pace_(pace) {
  steps_.resize(static_cast<std::size_t>(pace.workers));
  std::size_t steps = 0, places_left = 2 * recorded.count() + kMostGaps;
  // A run that goes on from a checkpoint begins with a later step: what is not recorded needs no memory.
  std::optional<std::int64_t> first;
  for (const auto& [worker, its] : recorded.of_workers) {
    for (const StepRecord& step : its) first = std::min(step.step, first.value_or(step.step));
  }
  first_step_ = first.value_or(0);
  for (const auto& [worker, all] : recorded.of_workers) {
    if (worker >= pace.workers) continue;
    std::vector<const StepRecord*>& its = steps_[static_cast<std::size_t>(worker)];
    for (const StepRecord& step : all) {
      const auto index = static_cast<std::size_t>(step.step - first_step_);
      if (index >= its.size()) {
        const std::size_t more = index + 1 - its.size();
        if (more > places_left) continue;
        places_left -= more;
        its.resize(index + 1);
      }
      its[index] = &step;  // one that was undone and made again counts as it was made last
      steps = std::max(steps, index + 1);
    }
  }
  std::vector<std::vector<Arrival>> arrivals(steps);
  without_core_.resize(steps);
  for (int worker = 0; worker < pace.workers; ++worker) {
    const std::vector<const StepRecord*>& its = steps_[static_cast<std::size_t>(worker)];
    for (std::size_t index = 0; index < its.size(); ++index) {
      if (its[index] == nullptr) continue;
      arrivals[index].push_back({arrival_of(*its[index], pace), worker});
      without_core_[index] = std::max(without_core_[index], woken_late_ms(*its[index]));
    }
  }
  const auto quorum = static_cast<std::size_t>(std::clamp(pace.quorum, 1, pace.workers));
  for (std::vector<Arrival>& of_step : arrivals) {
    std::ranges::sort(of_step, {}, &Arrival::ms);
    awaited_.push_back(of_step.empty() ? Arrival() : of_step[std::min(quorum, of_step.size()) - 1]);
  }
}

const StepRecord* LateWorkers::step_of(int worker, std::int64_t step) const {
  const std::vector<const StepRecord*>& its = steps_[static_cast<std::size_t>(worker)];
  const std::int64_t index = step - first_step_;
  return index >= 0 && index < static_cast<std::int64_t>(its.size()) ? its[static_cast<std::size_t>(index)] : nullptr;
}

LateWorkers::Causes LateWorkers::causes_of(int worker, std::int64_t step) const {
  Causes causes{};
  const auto add = [&](Lateness lateness, double ms) { causes[static_cast<std::size_t>(lateness)] += ms; };
  for (std::int64_t back = 0; back < pace_.meets_every; ++back) {
    const StepRecord* const made = step_of(worker, step - back);
    if (made == nullptr) break;
    add(Lateness::kData, milliseconds(made->data));
    add(Lateness::kStraggle, milliseconds(made->straggle));
    add(Lateness::kCores, computing_without_core_ms(*made));
    add(Lateness::kCompute, computed_ms(*made) + milliseconds(made->sync.backward_codec));
  }
  // Without a core at the end of the step before, it began late.
  const StepRecord* const before = step_of(worker, step - pace_.meets_every);
  if (before != nullptr) add(Lateness::kCores, woken_late_ms(*before));
  return causes;
}

double LateWorkers::others_without_core_ms(const StepRecord& made) const {
  const std::int64_t index = made.step - first_step_;
  const bool all_with_all = pace_.lead == 0 && pace_.quorum == pace_.workers && !pace_.waits_in_forward;
  if (!all_with_all || index < 0 || index >= static_cast<std::int64_t>(without_core_.size())) return 0;
  return std::max(0.0, without_core_[static_cast<std::size_t>(index)] - woken_late_ms(made));
}

WaitForWorker LateWorkers::wait_of(const StepOfWorker& waiting) const {
  const auto& [own_worker, made] = waiting;
  const double waited = milliseconds(made->sync.exposed_wait);
  if (!pace_.lead || waited <= 0) return {};
  const std::int64_t step = made->step - *pace_.lead - (pace_.waits_in_forward ? 1 : 0);
  const std::int64_t index = step - first_step_;
  if (index < 0 || index >= static_cast<std::int64_t>(awaited_.size())) return {};
  const Arrival& last = awaited_[static_cast<std::size_t>(index)];
  if (last.worker < 0 || last.worker == own_worker) return {};
  WaitForWorker wait{.ms = std::clamp(last.ms - wait_begin_of(*made, pace_), 0.0, waited), .worker = last.worker};
  if (wait.ms <= 0) return {};
  wait.before = step_of(last.worker, step - pace_.meets_every);
  const Causes its = causes_of(last.worker, step), own = causes_of(own_worker, made->step);
  for (std::size_t i = 0; i < kLatenesses; ++i) wait.parts[i] = std::max(0.0, its[i] - own[i]);
  // Where all wait for all, they begin alike, unless the exchange before ended later for some.
  const StepRecord* const own_before = step_of(own_worker, made->step - pace_.meets_every);
  if (*pace_.lead == 0 && wait.before != nullptr && own_before != nullptr) {
    wait.parts[static_cast<std::size_t>(Lateness::kExchange)] =
        std::max(0.0, milliseconds(wait.before->end - own_before->end) - woken_late_ms(*wait.before));
  }
  const double sum = std::accumulate(wait.parts.begin(), wait.parts.end(), 0.0);
  if (sum <= 0) wait.parts[static_cast<std::size_t>(Lateness::kCompute)] = wait.ms;
  for (double& part : wait.parts) part *= sum > 0 ? wait.ms / sum : 1;
  return wait;
}

}  // namespace syncopate::experiments
