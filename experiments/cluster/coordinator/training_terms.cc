#include "experiments/cluster/coordinator/training_terms.h"

namespace syncopate::experiments {

TrainingTerms::TrainingTerms(const ResolvedRun& config, const JobPlan& plan, RunMonitor& monitor,
                             ControlServer& control)
    : config_(config),
      plan_(plan),
      monitor_(monitor),
      control_(control),
      epochs_(config.stop_at_target ? config.target_accuracy : 0),
      takes_snapshots_(plan.processes.size()) {}

void TrainingTerms::on_epoch_question(std::size_t process, std::int64_t epoch, TimePoint now) {
  if (epochs_.has_begun()) return answer({process, epoch}, now);
  epochs_.hold({process, epoch});
  monitor_.on_ready_to_train(process, now);
}

void TrainingTerms::begin(TimePoint now) {
  began_ = now;
  for (const EpochSchedule::Question& question : epochs_.begin()) answer(question, now);
}

void TrainingTerms::tell_changes() {
  if (!epochs_.has_begun() || monitor_.stopping()) return;
  for (std::size_t i = 0; i < plan_.processes.size(); ++i) {
    if (plan_.processes[i].role != Role::kWorker || !monitor_.trains(i)) continue;
    const bool wanted = is_to_take_snapshots(i);
    if (takes_snapshots_[i] == wanted) continue;
    takes_snapshots_[i] = wanted;
    control::FromCoordinator message;
    message.mutable_snapshot_terms()->set_wanted(wanted);
    control_.send(i, message);
  }
}

void TrainingTerms::answer(const EpochSchedule::Question& question, TimePoint now) {
  const auto [process, epoch] = question;
  const bool goes_on = epochs_.go_on(epoch);
  takes_snapshots_[process] = goes_on && is_to_take_snapshots(process);
  control::FromCoordinator message;
  control::EpochAnswer& answer = *message.mutable_epoch_answer();
  answer.set_epoch(epoch);
  answer.set_go_on(goes_on);
  answer.set_snapshots(takes_snapshots_[process]);
  answer.set_elapsed((now - began_).count());
  control_.send(process, message);
}

// One worker is enough, unless each has weights of its own, whose mean is evaluated.
bool TrainingTerms::is_to_take_snapshots(std::size_t process) {
  return (has_replicas_of_their_own(config_) || monitor_.chief() == process) && monitor_.wants_snapshots();
}

}  // namespace syncopate::experiments
