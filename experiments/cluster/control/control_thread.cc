#include "experiments/cluster/control/control_thread.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/text/log.h"
#include "experiments/cluster/control/wire_records.h"
#include "experiments/cluster/exit_code.h"

namespace syncopate::experiments {
namespace {

using control::FromCoordinator;
using control::ToCoordinator;

constexpr Duration kWatchdogMargin = std::chrono::seconds(2);
// A coordinator that has been silent for this fraction of the timeout counts as absent. That is early enough for every
// wait that depends on it to be extended before its deadline.
constexpr int kSilentParts = 4;

}  // namespace

ControlThread::ControlThread(const LineMaker& make_line, const std::string& run_id, Threads& threads,
                             Activity& activity, ControlChannel& channel, Patience& patience, LinkFaults& link_faults)
    : activity_(activity),
      channel_(channel),
      patience_(patience),
      link_faults_(link_faults),
      clock_(threads.clock()),
      progress_(kWatchdogMargin, clock_.now()),
      line_(make_line(channel)) {
  ToCoordinator hello;
  hello.mutable_hello()->set_run_id(run_id);
  hello.mutable_hello()->set_pid(line_->place().pid);
  hello.mutable_hello()->set_host(line_->place().host);
  channel_.post(std::move(hello));
  line_->open(
      {.on_message = [this](FromCoordinator& message, const zmq::message_t& weights) { handle(message, weights); },
       .on_tick = [this](TimePoint now) { return tick(now); }});
}

void ControlThread::set_timeout(Duration timeout, Duration stall_warning) {
  line_->set_linger(timeout);
  patience_.set_timeout(timeout);
  channel_.set_limits({timeout, stall_warning});
}

TimePoint ControlThread::tick(TimePoint now) {
  const auto [timeout, stall_warning] = channel_.limits();
  const Duration beat_every = heartbeat_interval(timeout, stall_warning);
  const bool is_beat_due = !last_beat_ || now - *last_beat_ >= beat_every;
  if (is_beat_due) {
    beat();
    last_beat_ = now;
    if (compares_clocks_) ask_time();
  }
  // Records that would follow soon leave together with a heartbeat.
  if (now >= next_records_ || (is_beat_due && next_records_ - now < beat_every / 4)) {
    channel_.post_records();
    next_records_ = now + records_every_;
  }
  const Duration absence = attention_.absence(now);
  coordinator_.forgive(absence);
  progress_.forgive(absence);
  patience_.tick(now);
  check_coordinator(timeout, now);
  check_own_progress(timeout, now);
  return std::min(*last_beat_ + beat_every, next_records_);
}

// The messages of many processes that were started together would otherwise arrive together.
void ControlThread::spread_out(const control::Welcome& welcome) {
  records_every_ = Duration(welcome.records_every());
  next_records_ = clock_.now() + Duration(welcome.records_from());
  const ControlLimits limits = channel_.limits();
  last_beat_ = next_records_ - heartbeat_interval(limits.timeout, limits.stall_warning);
}

void ControlThread::beat() {
  ToCoordinator message;
  message.mutable_heartbeat()->set_operation(activity_.operation());
  message.mutable_heartbeat()->set_step(activity_.step());
  if (const auto collective = channel_.collective_state()) {
    *message.mutable_heartbeat()->mutable_collective() = to_wire(*collective);
  }
  channel_.post(std::move(message));
}

void ControlThread::ask_time() {
  ToCoordinator message;
  message.mutable_clock_question()->set_sent(clock_.now().time_since_epoch().count());
  channel_.post(std::move(message));
}

// The first questions are asked one after the other, and then one with each heartbeat.
void ControlThread::take_time(const control::ClockAnswer& answer) {
  const auto time = [](std::int64_t nanoseconds) { return TimePoint(Duration(nanoseconds)); };
  offset_.add({.sent = time(answer.sent()),
               .received = time(answer.received()),
               .answered = time(answer.answered()),
               .heard = clock_.now()});
  if (++clock_answers_ < ClockOffset::kExchanges) return ask_time();
  if (const auto estimate = offset_.estimate()) {
    ToCoordinator message;
    message.mutable_clock_report()->set_offset(estimate->offset.count());
    message.mutable_clock_report()->set_uncertainty(estimate->uncertainty.count());
    channel_.post(std::move(message));
  }
  channel_.clocks_compared();
}

void ControlThread::impair_links(const control::ImpairLinks& order) {
  const std::optional<LinkFault> fault = from_wire(order.fault());
  if (!fault) return;
  const Duration length(order.length());
  log_info("links are impaired ({}) for {:.3g} s", control::ImpairLinks::Fault_Name(order.fault()), seconds(length));
  link_faults_.begin(*fault, std::max(link_faults_.until(*fault), clock_.now() + length));
}

void ControlThread::handle(FromCoordinator& message, const zmq::message_t& weights) {
  coordinator_.on_heard(clock_.now());
  switch (message.kind_case()) {
    case FromCoordinator::kWelcome:
      compares_clocks_ = message.welcome().compare_clocks();
      if (message.welcome().records_every() > 0) spread_out(message.welcome());
      if (compares_clocks_) ask_time();
      return channel_.welcome(message.welcome());
    case FromCoordinator::kClockAnswer:
      return take_time(message.clock_answer());
    case FromCoordinator::kSnapshotTerms:
      return channel_.set_wants_snapshots(message.snapshot_terms().wanted());
    case FromCoordinator::kEpochAnswer:
      channel_.set_wants_snapshots(message.epoch_answer().snapshots());
      return channel_.put(std::move(message));
    case FromCoordinator::kMembers:
    case FromCoordinator::kStepAnswer:
    case FromCoordinator::kLeaveAnswer:
    case FromCoordinator::kBatchLease:
    case FromCoordinator::kFinishAnswer:
      return channel_.put(std::move(message));
    case FromCoordinator::kMembership:
      return channel_.begin_membership(from_wire(message.membership()));
    case FromCoordinator::kImpairLinks:
      return impair_links(message.impair_links());
    case FromCoordinator::kWorkerLost:
      return channel_.lose_worker(message.worker_lost().rank());
    case FromCoordinator::kSnapshot:
      return channel_.push_snapshot(
          from_wire(message.snapshot(), {static_cast<const std::byte*>(weights.data()), weights.size()}));
    case FromCoordinator::kCheckpointOrder:
      return channel_.order_checkpoint(message.checkpoint_order().membership_epoch(),
                                       message.checkpoint_order().step());
    case FromCoordinator::kStop:
      if (!message.stop().reason().empty()) log_info("told to stop: {}", message.stop().reason());
      return channel_.stop();
    case FromCoordinator::kAlive:
    case FromCoordinator::KIND_NOT_SET:
      return;
  }
}

// If the coordinator is on this host, it is known whether it lives. If it does, this process waits as long as it lives,
// since a person may have stopped it. (The kernel ends this process with it.)
void ControlThread::check_coordinator(Duration timeout, TimePoint now) {
  const bool is_silent = coordinator_.silence(now) >= timeout / kSilentParts;
  const ControlLine::Coordinator known = is_silent ? line_->coordinator() : ControlLine::Coordinator::kUnknown;
  if (known == ControlLine::Coordinator::kLives) {
    if (!std::exchange(coordinator_is_away_, true)) {
      log_warning("nothing heard from the coordinator for {:.1f} s, which lives: waiting for it",
                  seconds(coordinator_.silence(now)));
    }
    return patience_.excuse(now);
  }
  coordinator_is_away_ = false;
  // The rest of the timeout is for a coordinator on another host, of which nothing is known.
  const bool is_lost = known == ControlLine::Coordinator::kHasDied;
  const std::optional<Duration> silence = coordinator_.falls_silent(is_lost ? timeout / kSilentParts : timeout, now);
  if (!silence) return;
  log_error("nothing heard from the coordinator for {:.1f} s{}: stopping", seconds(*silence),
            is_lost ? ", which has died" : "");
  channel_.stop();
}

// Ends the process if a wait that cannot be interrupted (such as one inside MPI) has passed its deadline.
void ControlThread::check_own_progress(Duration timeout, TimePoint now) {
  if (now < patience_.until() + kWatchdogMargin) return;
  const std::optional<Duration> still =
      progress_.stands_still_for(activity_.changes(), activity_.may_last(), timeout, now);
  if (!still) return;
  channel_.fail(
      to_wire(Status::deadline_exceeded(fmt::format("no progress for {:.0f} s", seconds(*still))), activity_));
  line_->end_process(ExitCode::kTimeout);
}

}  // namespace syncopate::experiments
