#include "experiments/checkpoint/checkpoint_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace syncopate::experiments {
namespace {

// The time over which the pace is measured.
constexpr Duration kPaceOver = std::chrono::milliseconds(300);
// The furthest that an order is given ahead.
constexpr Duration kFurthestAhead = std::chrono::seconds(2);
constexpr std::int64_t kLeastAhead = 2;
// The last one waits for nothing: where steps take longer than orders do, that is often enough, and else tried again.
constexpr std::int64_t kLastAhead = 1;

constexpr const char* kLonger = "a longer --checkpoint-every";

}  // namespace

void CheckpointPolicy::on_membership(std::int64_t membership_epoch, std::vector<std::string> writers, TimePoint now) {
  give_up_all("the run goes on with other members");
  given_up_.clear();
  membership_epoch_ = membership_epoch;
  writers_ = std::move(writers);
  std::erase_if(writers_, [&](const std::string& writer) {
    const auto found = with_nothing_.find(writer);
    return found != with_nothing_.end() && found->second == membership_epoch;
  });
  heard_.clear();
  next_step_.reset();
  pace_since_.reset();
  last_from_ = 0;  // all may go back
  if (interval_.steps == 0 && !next_) next_ = now + from_seconds(interval_.seconds);
  if (!begun_) begun_ = last_heard_ = now;
}

void CheckpointPolicy::on_steps(const std::string& worker, std::int64_t steps_done, TimePoint now) {
  heard_[worker] = std::max(heard_[worker], steps_done);
  furthest_ = std::max(furthest_, heard());
  last_heard_ = now;
  // The first reported step may be some steps past the first of the membership epoch, but hardly past one that is due.
  if (interval_.steps > 0 && !next_step_) next_step_ = ((steps_done - 1) / interval_.steps + 1) * interval_.steps;
  if (!pace_since_) {
    pace_since_ = now;
    pace_from_ = heard();
  } else if (now - *pace_since_ >= kPaceOver) {
    steps_a_second_ = static_cast<double>(heard() - pace_from_) / seconds(now - *pace_since_);
    pace_since_ = now;
    pace_from_ = heard();
  }
}

std::int64_t CheckpointPolicy::heard() const {
  const auto by_steps = [](const auto& entry) { return entry.second; };
  return together_ ? std::ranges::max_element(heard_, {}, by_steps)->second
                   : std::ranges::min_element(heard_, {}, by_steps)->second;
}

bool CheckpointPolicy::is_due(TimePoint now) const {
  if (ordered_ || writers_.empty() || heard_.empty()) return false;
  if (awaits_last()) {
    const bool knows_pace = steps_a_second_ > 0 || now - *last_since_ >= kPaceOver;
    return attempts_.empty() && completing_ == 0 && (!together_ || knows_pace);
  }
  if (interval_.steps > 0) return !together_ && heard() >= *next_step_;
  return next_ && now >= *next_ && (!together_ || steps_a_second_ > 0);
}

std::int64_t CheckpointPolicy::steps_within(Duration duration) const {
  return std::max(awaits_last() ? kLastAhead : kLeastAhead,
                  static_cast<std::int64_t>(std::ceil(steps_a_second_ * seconds(duration))));
}

void CheckpointPolicy::order(TimePoint now) {
  const std::int64_t step = together_ ? heard() + steps_within(ahead_) : heard();
  if (interval_.steps > 0) {
    next_step_ = (heard() / interval_.steps + 1) * interval_.steps;
  } else {
    next_ = std::max(*next_ + from_seconds(interval_.seconds), now);
  }
  if (last_step_ == step || given_up_.contains(step)) return;  // no step was made since
  ordered_ = step;
  attempts_.try_emplace(step);
  actions_.push_back({.kind = CheckpointAction::Kind::kOrder, .membership_epoch = membership_epoch_, .step = step});
}

void CheckpointPolicy::on_last_wanted(TimePoint now) {
  if (!begun_ || last_since_) return;
  last_since_ = now;
  last_from_ = furthest_;
  if (last_step_ && *last_step_ >= last_from_) last_ = last_step_;
}

void CheckpointPolicy::on_tick(TimePoint now) {
  if (is_due(now)) order(now);
}

void CheckpointPolicy::on_report(const std::string& writer, const CheckpointReport& report) {
  stalls_[writer] += report.stall;
  if (report.kind == CheckpointReport::Kind::kNothing) with_nothing_[writer] = report.membership_epoch;
  if (report.membership_epoch != membership_epoch_) return;
  if (report.kind == CheckpointReport::Kind::kNothing) return go_on_without(writer);
  if (given_up_.contains(report.step) || std::ranges::find(writers_, writer) == writers_.end()) return;
  switch (report.kind) {
    case CheckpointReport::Kind::kBusy:
      return give_up(report.step, fmt::format("{} was still writing the one before", writer),
                     {"the one before was still being written", std::string(kLonger) + ", or a faster disk"});
    case CheckpointReport::Kind::kPassed:
      ahead_ = std::min(ahead_ * 2, kFurthestAhead);
      return give_up(report.step, "", {"workers were told too late", kLonger});
    case CheckpointReport::Kind::kFailed:
      return give_up(report.step, report.reason, {report.reason, ""});
    case CheckpointReport::Kind::kNothing:
    case CheckpointReport::Kind::kWritten:
      break;
  }
  Attempt& attempt = attempts_[report.step];
  attempt.parts[writer] = report.part;
  attempt.taken = std::max(attempt.taken, report.taken);
  complete_if_whole(report.step);
}

void CheckpointPolicy::go_on_without(const std::string& writer) {
  std::erase(writers_, writer);
  std::vector<std::int64_t> steps;
  for (const auto& [step, attempt] : attempts_) steps.push_back(step);
  for (const std::int64_t step : steps) complete_if_whole(step);
}

void CheckpointPolicy::complete_if_whole(std::int64_t step) {
  Attempt& attempt = attempts_[step];
  if (attempt.parts.size() < writers_.size() || attempt.parts.empty()) return;
  CheckpointAction action{
      .kind = CheckpointAction::Kind::kComplete, .membership_epoch = membership_epoch_, .step = step};
  if (begun_) action.trained = std::max(Duration::zero(), attempt.taken - *begun_);
  for (auto& [name, part] : attempt.parts) action.parts.push_back(std::move(part));
  actions_.push_back(std::move(action));
  ++completing_;
  attempts_.erase(step);
  if (ordered_ == step) ordered_.reset();
}

void CheckpointPolicy::on_lost(const std::string& writer) {
  heard_.erase(writer);
  if (std::erase(writers_, writer) > 0) give_up_all(fmt::format("{} is lost", writer));
}

void CheckpointPolicy::on_complete(std::int64_t step, const Status& status) {
  --completing_;
  if (!status.ok()) return give_up(step, status.message(), {status.message(), ""});
  ++completed_;
  last_step_ = std::max(last_step_.value_or(step), step);
  reported_ = false;
  if (awaits_last() && step >= last_from_) last_ = step;
}

// If `report` is empty, nothing is shown. Checkpoints left out repeatedly are reported once.
void CheckpointPolicy::give_up(std::int64_t step, const std::string& report, const Reason& reason) {
  ++left_out_;
  ++reasons_[reason];
  attempts_.erase(step);
  given_up_.insert(step);
  if (ordered_ == step) ordered_.reset();
  actions_.push_back({.kind = CheckpointAction::Kind::kGiveUp, .membership_epoch = membership_epoch_, .step = step});
  if (report.empty() || std::exchange(reported_, true)) return;
  const std::string before = last_step_        ? fmt::format("that of step {} is kept", *last_step_)
                             : first_step_ > 0 ? fmt::format("the run has gone on from that of step {}", first_step_)
                                               : "there is none before it";
  actions_.push_back({.kind = CheckpointAction::Kind::kReport,
                      .step = step,
                      .text = fmt::format("no checkpoint of step {}: {}; {}", step, report, before)});
}

void CheckpointPolicy::give_up_all(const std::string& reason) {
  while (!attempts_.empty()) give_up(attempts_.begin()->first, reason, {reason, ""});
}

std::int64_t CheckpointPolicy::asked() const {
  if (interval_.steps > 0) return furthest_ / interval_.steps - first_step_ / interval_.steps;
  return begun_ ? static_cast<std::int64_t>(seconds(last_heard_ - *begun_) / interval_.seconds) : 0;
}

std::vector<CheckpointAction> CheckpointPolicy::take_actions() { return std::exchange(actions_, {}); }

CheckpointFigures CheckpointPolicy::figures() const {
  CheckpointFigures figures{
      .asked = std::max(asked(), completed_ + left_out_), .completed = completed_, .last_step = last_step_};
  figures.left_out = figures.asked - completed_;
  // Counts those without any report: their step passed unnoticed, or the run ended before they were complete.
  std::map<Reason, std::int64_t> reasons = reasons_;
  if (const std::int64_t unheard = figures.left_out - left_out_; unheard > 0) {
    reasons[{"steps went by, or training ended, before they could be written", kLonger}] += unheard;
  }
  const auto most = std::ranges::max_element(reasons, {}, [](const auto& reason) { return reason.second; });
  if (most != reasons.end()) {
    const auto& [why, remedy] = most->first;
    figures.why_left_out = why + (remedy.empty() ? "" : "; use " + remedy);
  }
  for (const auto& [writer, stall] : stalls_) figures.stall = std::max(figures.stall, stall);
  return figures;
}

}  // namespace syncopate::experiments
