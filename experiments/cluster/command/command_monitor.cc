#include "experiments/cluster/command/command_monitor.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/cluster/starter.h"

namespace syncopate::experiments {
namespace {

// Time in which a process writes what it has, once it is asked to end.
constexpr Duration kGrace = std::chrono::seconds(5);

bool has_lost_another(const ProcessEnd& end) { return end.last_words.find("PeerLost: ") != std::string::npos; }

}  // namespace

std::string CommandMonitor::name_of(int worker) const {
  const auto host = hosts_.find(worker);
  return fmt::format("worker {}{}", worker, host == hosts_.end() ? "" : fmt::format(" (host {})", host->second));
}

void CommandMonitor::on_end(int worker, const ProcessEnd& end, TimePoint now) {
  ended_.insert(worker);
  if (end.exit_code == 0 || is_settled_) return;
  if (must_kill(now)) return;  // we have ended it ourselves
  const Failure failure{worker, has_lost_another(end)};
  // Who has only lost another is named if nobody else has failed.
  if (failure_ && (failure.is_consequence || !failure_->is_consequence)) return;
  failure_ = failure;
  const bool has_not_begun = end.exit_code == kNotStarted;
  verdict_ = Verdict{has_not_begun ? ExitCode::kUsage : ExitCode::kProcessLost,
                     fmt::format("{} {}", name_of(worker), describe(end))};
  if (!kill_at_) kill_at_ = now + patience_;
}

void CommandMonitor::on_interrupt(TimePoint now) {
  kill_at_ = std::min(kill_at_.value_or(TimePoint::max()), now + kGrace);
  if (is_settled_) return;
  is_settled_ = true;
  verdict_ = Verdict{ExitCode::kInterrupted, "interrupted; what was recorded is kept"};
}

void CommandMonitor::on_failure(const Status& status, TimePoint now) {
  kill_at_ = now;
  if (is_settled_) return;
  is_settled_ = true;
  verdict_ = Verdict{exit_code_of(status), status.message()};
}

}  // namespace syncopate::experiments
