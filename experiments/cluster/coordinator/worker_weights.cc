#include "experiments/cluster/coordinator/worker_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "experiments/cluster/control/wire_records.h"

namespace syncopate::experiments {

using control::FromCoordinator;

namespace {

std::size_t first_worker_of(const JobPlan& plan) {
  const auto worker = std::ranges::find_if(
      plan.processes, [](const ProcessSpec& spec) { return spec.role == Role::kWorker && spec.rank == 0; });
  return static_cast<std::size_t>(worker - plan.processes.begin());
}

}  // namespace

WorkerWeights::WorkerWeights(const JobPlan& plan, std::size_t local_state_size, int means_of, bool leave_together,
                             bool chief_alone, RunMonitor& monitor, ControlServer& control, RunObserver& observer)
    : plan_(plan),
      local_state_size_(local_state_size),
      leave_together_(leave_together),
      monitor_(monitor),
      control_(control),
      observer_(observer),
      snapshots_(local_state_size, to_evaluator()),
      final_(chief_alone ? std::optional(first_worker_of(plan)) : std::nullopt) {
  if (means_of > 0) means_.emplace(means_of);
}

SnapshotRelay::Hands WorkerWeights::to_evaluator() {
  const auto evaluator = std::ranges::find(plan_.processes, Role::kEvaluator, &ProcessSpec::role);
  const auto process = static_cast<std::size_t>(evaluator - plan_.processes.begin());
  return {
      .send = [this, process](const FromCoordinator& message,
                              zmq::message_t weights) { control_.send(process, message, std::move(weights)); },
      .on_final = [this](const control::Snapshot& stamp, std::span<const float> weights,
                         std::span<const float> state) { observer_.on_final_weights(weights, state, rows_of(stamp)); }};
}

void WorkerWeights::on_snapshot(std::size_t process, const control::Snapshot& stamp, zmq::message_t weights,
                                Duration clock_offset) {
  if (stamp.final()) {
    final_.on_received();
    settle_final();
  } else if (means_) {
    const std::optional<std::vector<float>> mean = means_->add(plan_.processes[process].rank, stamp.point(),
                                                               {weights.data<float>(), weights.size() / sizeof(float)});
    if (!mean) return;
    weights = zmq::message_t(mean->data(), mean->size() * sizeof(float));
  }
  monitor_.on_snapshot(stamp.point(), stamp.final(), weights.size());
  control::Snapshot stamped = stamp;
  stamped.set_taken(stamp.taken() + clock_offset.count());
  snapshots_.add(std::move(stamped), std::move(weights));
  pass_on();
}

void WorkerWeights::on_local_state(std::size_t process, const control::LocalState& state) {
  const ProcessSpec& spec = plan_.processes[process];
  if (spec.role != Role::kWorker) return;
  if (!snapshots_.add_local_state(spec.rank, state)) {
    observer_.on_report(fmt::format("a local state of {} values from {}, where the model's has {}, is left out",
                                    state.values().size(), spec.name(), local_state_size_));
  }
  pass_on();
}

void WorkerWeights::pass_on() {
  if (!monitor_.evaluates()) snapshots_.give_up();
  std::vector<int> workers;
  for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
    if (plan_.processes[i].role == Role::kWorker && monitor_.still_there(i)) workers.push_back(plan_.processes[i].rank);
  }
  snapshots_.pass_on(workers);
}

void WorkerWeights::on_finish_question(std::size_t process) {
  final_.on_question(process);
  settle_final();
}

void WorkerWeights::settle_final() {
  const auto still_there = [this](std::size_t process) { return monitor_.still_there(process); };
  bool all_have_asked = true;
  for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
    const bool is_worker = plan_.processes[i].role == Role::kWorker;
    all_have_asked &=
        !leave_together_ || !is_worker || !still_there(i) || monitor_.phase(i) == ProcessPhase::kHasFinalWeights;
  }
  for (const FinalWeights::Answer& answer : final_.take_answers(still_there, all_have_asked)) {
    FromCoordinator message;
    message.mutable_finish_answer()->set_send_weights(answer.send_weights);
    control_.send(answer.process, message);
  }
}

}  // namespace syncopate::experiments
