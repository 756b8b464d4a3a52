// AnswerBoard: what the coordinator has answered and decided, as far as a process's threads may still wait for it: the
// answers to their questions, the newest membership epoch, and whether to stop. Most questions are asked of all members
// of a membership epoch together, and will not be answered once a newer one is known. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/status.h"
#include "experiments/cluster/control/control.pb.h"
#include "experiments/cluster/control/membership_epoch.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

class AnswerBoard {
 public:
  // Makes the board of the process that has this role and rank.
  AnswerBoard(Role role, int rank) : role_(role), rank_(rank) {}

  // Keeps an answer until the next membership epoch, since several threads may have asked the same. Ignores any other
  // message.
  void put(control::FromCoordinator message);
  // Stores a new membership epoch and discards the answers, which belong to an earlier one. Returns false and changes
  // nothing if an equally new one is already known.
  bool proclaim(const MembershipEpoch& membership);
  // The process must stop. Returns false if it was called before.
  bool stop();
  bool is_stopped() const { return stopped_; }

  // Returns the answer to a question. It is cancelled once the process must stop, or once there is a newer membership
  // epoch than the one joined, unless the question is whether the final weights are wanted. None: neither yet.
  std::optional<Result<control::FromCoordinator>> outcome_of(const control::ToCoordinator& question) const;
  // Returns the error for a question that has no outcome at its deadline.
  Status not_answered(const control::ToCoordinator& question) const;
  // Returns the answer to one of many questions of a single thread, if it has arrived, and discards it. Returns none
  // once outcome_of is cancelled.
  std::optional<control::FromCoordinator> take(const control::ToCoordinator& question);

  // Returns whether a membership epoch is known that has a number above `after` and includes this process.
  bool knows_membership(std::int64_t after) const;
  // Joins the newest such membership epoch and returns it. Fails with cancelled if the process must stop, with deadline
  // exceeded if none is known.
  Result<MembershipEpoch> join(std::int64_t after);
  std::int64_t joined() const { return joined_; }  // number of the membership epoch joined; below 0: none yet
  // Returns whether there is a newer membership epoch than the one joined.
  bool is_superseded() const { return newest_ && newest_->number > joined_; }

 private:
  const Role role_;
  const int rank_;
  std::map<std::string, control::FromCoordinator> answers_;  // by question
  std::optional<MembershipEpoch> newest_;                    // the newest that is known
  std::int64_t joined_ = -1;
  bool stopped_ = false;
};

}  // namespace syncopate::experiments
