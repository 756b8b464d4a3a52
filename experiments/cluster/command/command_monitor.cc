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
  const auto& hosts = options_.hosts;
  const auto host = hosts.find(worker);
  return fmt::format("worker {}{}", worker, host == hosts.end() ? "" : fmt::format(" (host {})", host->second));
}

// We have ended it ourselves.
std::optional<std::string> CommandMonitor::loss_of_late(int worker) const {
  if (!options_.is_elastic || verdict_) return std::nullopt;
  return fmt::format("{} was killed: the others had gone on without it, and ended", name_of(worker));
}

std::optional<std::string> CommandMonitor::on_end(int worker, const ProcessEnd& end, TimePoint now) {
  ended_.insert(worker);
  if (is_settled_) return std::nullopt;
  if (must_kill(now)) return loss_of_late(worker);
  if (end.exit_code == 0) {
    // Ranks of an elastic job end together, but for those that it has gone on without.
    if (options_.is_elastic && worker == 0) kill_at_ = now + options_.patience;
    return std::nullopt;
  }
  const std::string what = fmt::format("{} {}", name_of(worker), describe(end));
  const bool has_not_begun = end.exit_code == kNotStarted;
  if (options_.is_elastic && worker != 0 && !has_not_begun && !failure_ && !is_over()) {
    last_loss_ = what;
    return fmt::format("{}; the others go on", what);
  }
  const Failure failure{worker, has_lost_another(end)};
  // Who has only lost another is named if nobody else has failed.
  if (failure_ && (failure.is_consequence || !failure_->is_consequence)) return std::nullopt;
  failure_ = failure;
  verdict_ = Verdict{has_not_begun ? ExitCode::kUsage : ExitCode::kProcessLost,
                     failure.is_consequence && last_loss_ ? *last_loss_ : what};
  if (!kill_at_) kill_at_ = now + options_.patience;
  return std::nullopt;
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
