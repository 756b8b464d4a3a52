#include "experiments/lab/why/late_workers.h"

#include <algorithm>
#include <numeric>

namespace syncopate::experiments {
namespace {

// Steps that nobody recorded, of all workers together, as where workers were lost: a file that skips more has no such
// steps.
constexpr std::size_t kMostGaps = 1000000;

// When the worker had finished its gradients.
double arrival_of(const StepRow& row, const RunPace& pace) {
  return pace.waits_in_forward ? row.end : row.end - row.wait - row.optimizer;
}

// When it began to wait.
double wait_begin_of(const StepRow& row, const RunPace& pace) {
  return row.end - row.wait - row.optimizer - (pace.waits_in_forward ? row.forward + row.backward + row.straggle : 0.0);
}

}  // namespace

double computing_without_core_ms(const StepRow& row) {
  return std::min(row.compute_core_wait, std::max(0.0, row.forward + row.backward - row.backward_codec));
}

double woken_late_ms(const StepRow& row) {
  return std::clamp(row.core_wait.value_or(0) - row.compute_core_wait, 0.0, std::max(0.0, row.wait));
}

double computed_ms(const StepRow& row) {
  return row.forward + row.backward - row.backward_codec - computing_without_core_ms(row);
}

LateWorkers::LateWorkers(std::span<const StepRow> rows, const RunPace& pace) : pace_(pace) {
  rows_.resize(static_cast<std::size_t>(pace.workers));
  std::size_t steps = 0, places_left = 2 * rows.size() + kMostGaps;
  // A run that goes on from a checkpoint begins with a later step: what is not recorded needs no memory.
  const auto first = std::ranges::min_element(rows, {}, &StepRow::step);
  first_step_ = first == rows.end() ? 0 : first->step;
  for (const StepRow& row : rows) {
    if (row.worker >= pace.workers) continue;
    std::vector<const StepRow*>& its = rows_[static_cast<std::size_t>(row.worker)];
    const auto index = static_cast<std::size_t>(row.step - first_step_);
    if (index >= its.size()) {
      const std::size_t more = index + 1 - its.size();
      if (more > places_left) continue;
      places_left -= more;
      its.resize(index + 1);
    }
    its[index] = &row;  // one that was undone and made again counts as it was made last
    steps = std::max(steps, index + 1);
  }
  std::vector<std::vector<Arrival>> arrivals(steps);
  without_core_.resize(steps);
  for (int worker = 0; worker < pace.workers; ++worker) {
    const std::vector<const StepRow*>& its = rows_[static_cast<std::size_t>(worker)];
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

const StepRow* LateWorkers::row_of(int worker, std::int64_t step) const {
  const std::vector<const StepRow*>& its = rows_[static_cast<std::size_t>(worker)];
  const std::int64_t index = step - first_step_;
  return index >= 0 && index < static_cast<std::int64_t>(its.size()) ? its[static_cast<std::size_t>(index)] : nullptr;
}

LateWorkers::Causes LateWorkers::causes_of(int worker, std::int64_t step) const {
  Causes causes{};
  const auto add = [&](Lateness lateness, double ms) { causes[static_cast<std::size_t>(lateness)] += ms; };
  for (std::int64_t back = 0; back < pace_.meets_every; ++back) {
    const StepRow* const row = row_of(worker, step - back);
    if (row == nullptr) break;
    add(Lateness::kData, row->data);
    add(Lateness::kStraggle, row->straggle);
    add(Lateness::kCores, computing_without_core_ms(*row));
    add(Lateness::kCompute, computed_ms(*row) + row->backward_codec);
  }
  // Without a core at the end of the step before, it began late.
  const StepRow* const before = row_of(worker, step - pace_.meets_every);
  if (before != nullptr) add(Lateness::kCores, woken_late_ms(*before));
  return causes;
}

double LateWorkers::others_without_core_ms(const StepRow& row) const {
  const std::int64_t index = row.step - first_step_;
  const bool all_with_all = pace_.lead == 0 && pace_.quorum == pace_.workers && !pace_.waits_in_forward;
  if (!all_with_all || index < 0 || index >= static_cast<std::int64_t>(without_core_.size())) return 0;
  return std::max(0.0, without_core_[static_cast<std::size_t>(index)] - woken_late_ms(row));
}

WaitForWorker LateWorkers::wait_of(const StepRow& row) const {
  if (!pace_.lead || row.wait <= 0) return {};
  const std::int64_t step = row.step - *pace_.lead - (pace_.waits_in_forward ? 1 : 0);
  const std::int64_t index = step - first_step_;
  if (index < 0 || index >= static_cast<std::int64_t>(awaited_.size())) return {};
  const Arrival& last = awaited_[static_cast<std::size_t>(index)];
  if (last.worker < 0 || last.worker == row.worker) return {};
  WaitForWorker wait{.ms = std::clamp(last.ms - wait_begin_of(row, pace_), 0.0, row.wait), .worker = last.worker};
  if (wait.ms <= 0) return {};
  wait.before = row_of(last.worker, step - pace_.meets_every);
  const Causes its = causes_of(last.worker, step), own = causes_of(row.worker, row.step);
  for (std::size_t i = 0; i < kLatenesses; ++i) wait.parts[i] = std::max(0.0, its[i] - own[i]);
  // Where all wait for all, they begin alike, unless the exchange before ended later for some.
  const StepRow* const own_before = row_of(row.worker, row.step - pace_.meets_every);
  if (*pace_.lead == 0 && wait.before != nullptr && own_before != nullptr) {
    wait.parts[static_cast<std::size_t>(Lateness::kExchange)] =
        std::max(0.0, wait.before->end - own_before->end - woken_late_ms(*wait.before));
  }
  const double sum = std::accumulate(wait.parts.begin(), wait.parts.end(), 0.0);
  if (sum <= 0) wait.parts[static_cast<std::size_t>(Lateness::kCompute)] = wait.ms;
  for (double& part : wait.parts) part *= sum > 0 ? wait.ms / sum : 1;
  return wait;
}

}  // namespace syncopate::experiments
