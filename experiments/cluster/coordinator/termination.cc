#include "experiments/cluster/coordinator/termination.h"

#include <fmt/format.h>
#include <signal.h>

namespace syncopate::experiments {

void Termination::on_signal(int signal, TimePoint now) {
  const bool is_first = !deadline_ && !monitor_.stopping();
  if (signal != SIGTERM || !is_first || grace_seconds_ <= 0 || !checkpoints_.take_last(now)) {
    return monitor_.on_interrupt(now);
  }
  deadline_ = now + from_seconds(grace_seconds_);
  report_(fmt::format("SIGTERM: ends after a last checkpoint, within {:g} s", grace_seconds_));
}

void Termination::act(TimePoint now) {
  if (!deadline_ || monitor_.stopping()) return;
  if (const std::optional<std::int64_t> step = checkpoints_.last_taken()) {
    return monitor_.on_last_checkpoint(*step, now);
  }
  if (now < *deadline_) return;
  report_(fmt::format("no last checkpoint was complete within --grace={:g}", grace_seconds_));
  monitor_.on_interrupt(now);
}

}  // namespace syncopate::experiments
