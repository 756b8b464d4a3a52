// AnswerBoard: where a process's threads wait for messages of the coordinator, each until its own deadline: answers to
// their questions, and the next membership epoch. Most questions are asked of all members of a membership epoch
// together, and will not be answered once a newer one is known.
//
// Any thread may call any method: the control thread stores what arrives, and others wait. The board calls nothing else
// while it holds its mutex.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "common/clock.h"
#include "common/patience.h"
#include "common/status.h"
#include "experiments/cluster/control/control.pb.h"
#include "experiments/cluster/control/membership_epoch.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

class AnswerBoard {
 public:
  // Makes the board of the process that has this role and rank. `patience` extends deadlines.
  AnswerBoard(Role role, int rank, std::shared_ptr<Patience> patience = std::make_shared<Patience>())
      : role_(role), rank_(rank), patience_(std::move(patience)) {}

  // Messages that have arrived.

  // Keeps an answer until the next membership epoch, since several threads may have asked the same. Ignores any other
  // message.
  void put(control::FromCoordinator message);
  // Stores a new membership epoch and discards the answers, which belong to an earlier one. Returns false and changes
  // nothing if an equally new one is already known.
  bool proclaim(const MembershipEpoch& membership);
  // The process must stop: all waits end. Returns false if it was called before.
  bool stop();

  // Waits.

  // Returns the answer to a question that has been sent. Fails with cancelled once the process must stop, or once there
  // is a newer membership epoch than the one joined, unless the question is whether the final weights are wanted. If
  // the deadline passes, the error says what was waited for.
  Result<control::FromCoordinator> wait_for(const control::ToCoordinator& question, TimePoint deadline);

  // Returns the answer to one of many questions of a single thread, if it has arrived, and discards it. Returns none
  // once wait_for would be cancelled.
  std::optional<control::FromCoordinator> take(const control::ToCoordinator& question);

  // Returns whether a membership epoch is known that has a number above `after` and includes this process.
  bool knows_membership(std::int64_t after) const;
  // Waits for such a membership epoch, joins the newest, and returns it. Fails with cancelled once the process must
  // stop.
  Result<MembershipEpoch> join(std::int64_t after, TimePoint deadline);

  std::int64_t joined() const;  // number of the membership epoch joined; below 0: none yet
  // Returns whether there is a newer membership epoch than the one joined.
  bool is_superseded() const;
  // Returns whether there is one, or the process must stop.
  bool is_off() const;

 private:
  // The following require mutex_.
  bool has_newer() const { return newest_ && newest_->number > joined_; }
  bool takes_part_after(std::int64_t after) const;
  // Waits until the condition is met, or the deadline, extended by patience_, has passed.
  template <typename Condition>
  void wait_until(std::unique_lock<std::mutex>& lock, TimePoint deadline, const Condition& condition);

  const Role role_;
  const int rank_;
  const std::shared_ptr<Patience> patience_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<std::string, control::FromCoordinator> answers_;  // by question
  std::optional<MembershipEpoch> newest_;                    // the newest that is known
  std::int64_t joined_ = -1;
  bool stopped_ = false;
};

}  // namespace syncopate::experiments
