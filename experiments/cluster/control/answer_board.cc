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
  if (!key.empty()) answers_[key] = std::move(message);
}

bool AnswerBoard::proclaim(const MembershipEpoch& membership) {
  if (newest_ && newest_->number >= membership.number) return false;
  newest_ = membership;
  answers_.clear();
  return true;
}

bool AnswerBoard::stop() { return !std::exchange(stopped_, true); }

std::optional<Result<FromCoordinator>> AnswerBoard::outcome_of(const ToCoordinator& question) const {
  const auto found = answers_.find(key_of(question));
  if (found != answers_.end()) return found->second;
  if (stopped_) return Status::cancelled("told to stop");
  const bool is_of_run = question.kind_case() == ToCoordinator::kFinishQuestion;
  if (!is_of_run && is_superseded()) return Status::cancelled("the run goes on in a new membership");
  return std::nullopt;
}

Status AnswerBoard::not_answered(const ToCoordinator& question) const {
  return Status::deadline_exceeded(fmt::format("waiting for {}: not everybody is there", key_of(question)));
}

std::optional<FromCoordinator> AnswerBoard::take(const ToCoordinator& question) {
  if (stopped_ || is_superseded()) return std::nullopt;
  auto found = answers_.extract(key_of(question));
  return found.empty() ? std::nullopt : std::optional(std::move(found.mapped()));
}

bool AnswerBoard::knows_membership(std::int64_t after) const {
  return newest_ && newest_->number > after && takes_part(*newest_, role_, rank_);
}

Result<MembershipEpoch> AnswerBoard::join(std::int64_t after) {
  if (stopped_) return Status::cancelled("told to stop");
  if (!knows_membership(after)) return Status::deadline_exceeded(fmt::format("no membership after {}", after));
  joined_ = newest_->number;
  return *newest_;
}

}  // namespace syncopate::experiments
