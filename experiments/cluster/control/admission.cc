#include "experiments/cluster/control/admission.h"

namespace syncopate::experiments {

void Admission::on_welcome(const control::Welcome& welcome) {
  {
    const std::lock_guard lock(mutex_);
    config_toml_ = welcome.config_toml();
    checkpoints_ = welcome.checkpoints();
    checkpoint_terms_ = {.digests = welcome.checkpoint_digests() ? Digests::kYes : Digests::kNo,
                         .resumed = welcome.resumed_checkpoint(),
                         .resumed_digest = welcome.resumed_digest()};
    announced_steps_.assign(welcome.announced_steps().begin(), welcome.announced_steps().end());
    clocks_compared_ = !welcome.compare_clocks();
    welcomed_ = true;
  }
  changed_.notify_all();
}

void Admission::on_clocks_compared() {
  {
    const std::lock_guard lock(mutex_);
    clocks_compared_ = true;
  }
  changed_.notify_all();
}

void Admission::on_stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

Status Admission::wait(TimePoint deadline) {
  std::unique_lock lock(mutex_);
  const auto is_in = [&] { return welcomed_ && clocks_compared_; };
  changed_.wait_until(lock, deadline, [&] { return is_in() || stopped_; });
  if (is_in()) return {};
  if (stopped_) return Status::cancelled("told to stop");
  return Status::deadline_exceeded("the coordinator does not answer");
}

}  // namespace syncopate::experiments
