#include "experiments/cluster/control/answer_board.h"

#include <fmt/format.h>

#include <utility>

namespace syncopate::experiments {
namespace {

using control::FromCoordinator;
using control::ToCoordinator;

// A question and its answer have the same key, which also names what was waited for in error messages.
std::string group_key(const std::string& group) { return "group " + group; }
std::string epoch_key(std::int64_t epoch) { return fmt::format("epoch {}", epoch); }
std::string step_key(std::int64_t step) { return fmt::format("step {}", step); }
std::string batches_key(std::int64_t number) { return fmt::format("batches, request {}", number); }
constexpr const char* kLeaveKey = "leave";
constexpr const char* kFinishKey = "finish";

std::string key_of(const ToCoordinator& question) {
  switch (question.kind_case()) {
    case ToCoordinator::kPublish:
      return group_key(question.publish().group());
    case ToCoordinator::kEpochQuestion:
      return epoch_key(question.epoch_question().epoch());
    case ToCoordinator::kStepAnnouncement:
      return step_key(question.step_announcement().step());
    case ToCoordinator::kBatchRequest:
      return batches_key(question.batch_request().number());
    case ToCoordinator::kLeaveQuestion:
      return kLeaveKey;
    case ToCoordinator::kFinishQuestion:
      return kFinishKey;
    default:
      return {};
  }
}

std::string key_of(const FromCoordinator& answer) {
  switch (answer.kind_case()) {
    case FromCoordinator::kMembers:
      return group_key(answer.members().group());
    case FromCoordinator::kEpochAnswer:
      return epoch_key(answer.epoch_answer().epoch());
    case FromCoordinator::kStepAnswer:
      return step_key(answer.step_answer().step());
    case FromCoordinator::kBatchLease:
      return batches_key(answer.batch_lease().number());
    case FromCoordinator::kLeaveAnswer:
      return kLeaveKey;
    case FromCoordinator::kFinishAnswer:
      return kFinishKey;
    default:
      return {};
  }
}

}  // namespace

void AnswerBoard::put(FromCoordinator message) {
  const std::string key = key_of(message);
  if (key.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    answers_[key] = std::move(message);
  }
  changed_.notify_all();
}

bool AnswerBoard::proclaim(const MembershipEpoch& membership) {
  {
    const std::lock_guard lock(mutex_);
    if (newest_ && newest_->number >= membership.number) return false;
    newest_ = membership;
    answers_.clear();
  }
  changed_.notify_all();
  return true;
}

bool AnswerBoard::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return false;
  }
  changed_.notify_all();
  return true;
}

template <typename Condition>
void AnswerBoard::wait_until(std::unique_lock<std::mutex>& lock, TimePoint deadline, const Condition& condition) {
  const SteadyClock clock;
  PatientWait wait(*patience_, deadline, clock.now());
  while (const std::optional<TimePoint> next = wait.next(clock.now())) {
    if (changed_.wait_until(lock, *next, condition)) return;
  }
}

Result<FromCoordinator> AnswerBoard::wait_for(const ToCoordinator& question, TimePoint deadline) {
  const std::string key = key_of(question);
  const bool is_of_run = question.kind_case() == ToCoordinator::kFinishQuestion;
  std::unique_lock lock(mutex_);
  const auto is_over = [&] { return stopped_ || (!is_of_run && has_newer()); };
  wait_until(lock, deadline, [&] { return is_over() || answers_.contains(key); });
  const auto found = answers_.find(key);
  if (found != answers_.end()) return found->second;
  if (is_over()) return Status::cancelled(stopped_ ? "told to stop" : "the run goes on in a new membership");
  return Status::deadline_exceeded(fmt::format("waiting for {}: not everybody is there", key));
}

std::optional<FromCoordinator> AnswerBoard::take(const ToCoordinator& question) {
  const std::lock_guard lock(mutex_);
  if (stopped_ || has_newer()) return std::nullopt;
  auto found = answers_.extract(key_of(question));
  return found.empty() ? std::nullopt : std::optional(std::move(found.mapped()));
}

bool AnswerBoard::takes_part_after(std::int64_t after) const {
  return newest_ && newest_->number > after && takes_part(*newest_, role_, rank_);
}

bool AnswerBoard::knows_membership(std::int64_t after) const {
  const std::lock_guard lock(mutex_);
  return takes_part_after(after);
}

Result<MembershipEpoch> AnswerBoard::join(std::int64_t after, TimePoint deadline) {
  std::unique_lock lock(mutex_);
  wait_until(lock, deadline, [&] { return stopped_ || takes_part_after(after); });
  if (stopped_) return Status::cancelled("told to stop");
  if (!takes_part_after(after)) {
    return Status::deadline_exceeded(fmt::format("no membership after {}", after));
  }
  joined_ = newest_->number;
  return *newest_;
}

std::int64_t AnswerBoard::joined() const {
  const std::lock_guard lock(mutex_);
  return joined_;
}

bool AnswerBoard::is_superseded() const {
  const std::lock_guard lock(mutex_);
  return has_newer();
}

bool AnswerBoard::is_off() const {
  const std::lock_guard lock(mutex_);
  return stopped_ || has_newer();
}

}  // namespace syncopate::experiments
