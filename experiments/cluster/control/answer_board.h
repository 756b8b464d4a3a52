// AnswerBoard: where a process's threads wait for what the coordinator says, each until its own deadline: answers to
// what they have asked, and the next generation. Most questions are asked of all members of a generation together, and
// have no answer any more once a newer one is known.
//
// Any thread may call any method: the control thread puts in what comes, others wait. Its mutex is its own; nothing
// else is called while it is held.
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
#include "experiments/cluster/control/generation.h"
#include "experiments/cluster/plan/job_plan.h"

namespace syncopate::experiments {

class AnswerBoard {
 public:
  // For the process that has this role and rank.
  // `patience` is had with deadlines.
  AnswerBoard(Role role, int rank, std::shared_ptr<Patience> patience = std::make_shared<Patience>())
      : role_(role), rank_(rank), patience_(std::move(patience)) {}

  // What has come.

  // Keeps an answer until the next generation: several threads may have asked the same. Anything else is left out.
  void put(control::FromCoordinator message);
  // Answers that were there belong to an earlier one, and are forgotten. False, and nothing is changed, where one as
  // new is known already.
  bool proclaim(const Generation& generation);
  // The process is to stop: all waits end. False where it was told so before.
  bool stop();

  // What is waited for.

  // The answer to a question that has been sent. Cancelled once the process is to stop or, but for the question whether
  // the final weights are wanted, there is a newer generation than the one joined. A passed deadline says what was
  // waited for.
  Result<control::FromCoordinator> wait_for(const control::ToCoordinator& question, TimePoint deadline);

  // The answer to one of many questions that a single thread asks, if it is here: it is not kept. None once wait_for
  // would be cancelled.
  std::optional<control::FromCoordinator> take(const control::ToCoordinator& question);

  // Whether a generation is known that has a number above `after` and in which this process takes part.
  bool knows_generation(std::int64_t after) const;
  // The newest of these, which this process is in from then on; waits until there is one. Cancelled once the process is
  // to stop.
  Result<Generation> join(std::int64_t after, TimePoint deadline);

  std::int64_t joined() const;  // below 0: none yet
  // There is a newer generation than the one joined.
  bool is_superseded() const;
  // There is, or the process is to stop.
  bool is_off() const;

 private:
  // With mutex_.
  bool has_newer() const { return newest_ && newest_->number > joined_; }
  bool takes_part_after(std::int64_t after) const;
  // Until the condition is met, or the deadline has passed, with patience.
  template <typename Condition>
  void wait_until(std::unique_lock<std::mutex>& lock, TimePoint deadline, const Condition& condition);

  const Role role_;
  const int rank_;
  const std::shared_ptr<Patience> patience_;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::map<std::string, control::FromCoordinator> answers_;  // by what was asked
  std::optional<Generation> newest_;                         // that is known
  std::int64_t joined_ = -1;
  bool stopped_ = false;
};

}  // namespace syncopate::experiments
