// ControlChannel: what passes between the control thread of a process and its other threads. Messages to the
// coordinator are queued here; its answers, and the news that it sends unasked, are kept here until somebody takes
// them.
//
// Any thread may call any method. One monitor guards everything. It is held while a message is moved and while
// AnswerBoard decides, never while a message is encoded or sent, and never while a callback runs.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>
#include <zmq.hpp>

#include "allreduce/collective/collective_activity.h"
#include "common/clock.h"
#include "common/patience.h"
#include "common/status.h"
#include "common/step_record.h"
#include "common/threads.h"
#include "experiments/cluster/control/answer_board.h"
#include "experiments/cluster/control/control.pb.h"
#include "experiments/cluster/control/membership_epoch.h"
#include "experiments/cluster/control/packed_steps.h"
#include "experiments/cluster/control/subscription.h"
#include "experiments/cluster/control/weights_snapshot.h"

namespace syncopate::experiments {

// How long a process waits, and how soon a silence is reported.
struct ControlLimits {
  Duration timeout = std::chrono::seconds(30);
  Duration stall_warning{};
};

class ControlChannel {
 public:
  struct Outgoing {
    control::ToCoordinator message;
    std::optional<zmq::message_t> weights;
    std::vector<SentStep> steps = {};  // become the message when it is taken
  };

  // Makes the channel of the process that has this role and rank, between threads of `threads`, which outlives it.
  // `patience` extends deadlines.
  ControlChannel(Role role, int rank, std::shared_ptr<Patience> patience = std::make_shared<Patience>(),
                 Threads& threads = os_threads());

  // To the coordinator.

  void post(control::ToCoordinator message, std::optional<zmq::message_t> weights = std::nullopt);
  // Collects the record of a step that was finished in the membership epoch joined.
  void add(const StepRecord& record);
  // Queues the collected records. They precede every message that is posted after this call.
  void post_records();
  // Queues the collected records and this failure, if it is the first.
  void fail(const control::Failure& failure);
  // Returns all queued messages, in order, and empties the queue.
  std::deque<Outgoing> take_outgoing();

  void set_limits(const ControlLimits& limits);
  ControlLimits limits() const;
  // From now on `wake` is called, by any thread, when messages are queued or the limits change. Called before other
  // threads use the channel.
  void wake_by(std::function<void()> wake) { wake_ = std::move(wake); }
  void wake() const {
    if (wake_) wake_();
  }

  // From the coordinator. Called by the control thread.

  void welcome(const control::Welcome& welcome);
  void clocks_compared();
  // Keeps an answer until the next membership epoch. Ignores any other message.
  void put(control::FromCoordinator answer);
  void set_wants_snapshots(bool wanted);
  void push_snapshot(WeightsSnapshot snapshot);
  // A membership epoch begins, unless an equally new one is known. The answers given and the workers lost before it are
  // forgotten.
  void begin_membership(const MembershipEpoch& membership);
  void lose_worker(int rank);
  void order_checkpoint(std::int64_t membership_epoch, std::int64_t step);
  // The process must stop: all waits end. Only the first call counts.
  void stop();

  // Waits. Each fails with cancelled once the process must stop.

  // Waits for the coordinator's welcome and, if that asks for it, until the clocks have been compared.
  Result<control::Welcome> wait_for_welcome(TimePoint deadline);
  // Returns the answer to a question that has been posted. AnswerBoard says when it is cancelled. If the deadline
  // passes, the error says what was waited for.
  Result<control::FromCoordinator> wait_for(const control::ToCoordinator& question, TimePoint deadline);
  // Waits for a membership epoch that has a number above `after` and includes this process, joins the newest, and
  // returns it.
  Result<MembershipEpoch> join(std::int64_t after, TimePoint deadline);
  // Waits for a snapshot and returns the oldest. Those that have arrived before a stop are still returned.
  Result<WeightsSnapshot> next_snapshot();

  // What is known now.

  // Returns the answer to one of many questions of a single thread, if it has arrived, and discards it. Returns none
  // once wait_for would be cancelled.
  std::optional<control::FromCoordinator> take(const control::ToCoordinator& question);
  bool wants_snapshots() const;
  bool knows_membership(std::int64_t after) const;
  std::int64_t joined() const;  // number of the membership epoch joined; below 0: none yet
  bool is_superseded() const;   // whether there is a newer membership epoch than the one joined
  bool is_off() const;          // whether there is one, or the process must stop

  // Callbacks. ControlClient says when each is called. One runs at a time, on the control thread; but for news that has
  // arrived before, the thread that registers a callback calls it. A callback must neither register one nor end a
  // subscription. The channel must outlive the subscriptions.

  Subscription on_stop(std::function<void()> callback);
  Subscription on_worker_lost(std::function<void(int rank)> callback);
  Subscription on_regroup(std::function<void()> callback);
  Subscription on_checkpoint_order(std::function<void(std::int64_t membership_epoch, std::int64_t step)> callback);
  Subscription on_heartbeat(std::function<allreduce::CollectiveState()> state);
  // Returns what the function that was last registered by on_heartbeat() returns; none if there is no function.
  std::optional<allreduce::CollectiveState> collective_state();

 private:
  using Lock = std::unique_lock<Monitor>;
  template <typename Function>
  using Callbacks = std::map<std::int64_t, std::function<Function>>;  // in the order in which they were registered

  // The following take the lock that the caller holds.
  // Waits until the condition is met.
  template <typename Condition>
  void wait(Lock& lock, const Condition& condition);
  // Waits until the condition is met, or the deadline, extended by patience_, has passed.
  template <typename Condition>
  void wait_until(Lock& lock, TimePoint deadline, const Condition& condition);
  template <typename Function>
  Subscription add_callback(Callbacks<Function>& callbacks, std::function<Function> callback);
  // Calls `call` without the lock, when no other callback runs.
  template <typename Call>
  void run(Lock& lock, const Call& call);
  // Calls those callbacks that are registered now, unless they end meanwhile.
  template <typename Function, typename... Arguments>
  void call_each(Lock& lock, Callbacks<Function>& callbacks, Arguments... arguments);
  void queue_records();

  const std::shared_ptr<Patience> patience_;
  const Clock& clock_;
  std::function<void()> wake_;

  const std::unique_ptr<Monitor> monitor_;  // guards what follows, and says that it has changed

  std::deque<Outgoing> outgoing_;
  std::vector<SentStep> steps_;  // collected records
  bool failed_ = false;
  ControlLimits limits_;

  std::optional<control::Welcome> welcome_;
  bool clocks_compared_ = false;  // as far as the welcome asks for it
  AnswerBoard board_;
  std::vector<int> lost_workers_;  // in this membership epoch
  std::deque<WeightsSnapshot> snapshots_;
  bool wants_snapshots_ = false;

  std::int64_t registered_ = 0;
  bool callback_runs_ = false;
  Callbacks<void()> stop_;
  Callbacks<void(int)> worker_lost_;
  Callbacks<void()> regroup_;
  Callbacks<void(std::int64_t, std::int64_t)> checkpoint_order_;
  Callbacks<allreduce::CollectiveState()> collective_state_;
};

}  // namespace syncopate::experiments
