// ControlClient: a process's connection to the coordinator. It is the process's rendezvous, sends its step records,
// asks the questions that are decided for all, and sends heartbeats that say what the process is doing. It ends the
// process's waits when the coordinator says stop or has disappeared.
//
// A thread of its own owns the socket. All methods may be called from any thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "allreduce/collective/collective_activity.h"
#include "common/activity.h"
#include "common/patience.h"
#include "common/rendezvous.h"
#include "common/server_figures.h"
#include "common/step_record.h"
#include "common/trace/trace_event.h"
#include "common/transport/link_faults.h"
#include "experiments/checkpoint/checkpoint_policy.h"
#include "experiments/checkpoint/content_hash.h"
#include "experiments/cluster/control/batch_range.h"
#include "experiments/cluster/control/control_identity.h"
#include "experiments/cluster/control/control_line.h"
#include "experiments/cluster/control/membership_epoch.h"
#include "experiments/cluster/control/subscription.h"
#include "experiments/cluster/control/test_figures.h"
#include "experiments/cluster/control/weights_snapshot.h"
#include "worker/not_finite.h"

namespace syncopate::experiments {

// What the coordinator tells a process about checkpoints, besides where they are written.
struct CheckpointTerms {
  Digests digests = Digests::kNo;  // which digests it makes of the parts that it writes
  // The checkpoint that the run resumes from, and the digest of its manifest, which the coordinator has verified. The
  // process must read exactly this one, even if the files have been replaced since. Empty if the run begins anew.
  std::string resumed = {};
  std::string resumed_digest = {};
  std::int64_t last_step = 0;  // of the job, whose checkpoint is not left out

  // Returns the digest that the manifest of the checkpoint in `folder` must have; empty: any.
  std::string digest_of(const std::string& folder) const { return folder == resumed ? resumed_digest : std::string(); }
};

struct ControlOptions {
  std::string address;  // of the coordinator, for errors
  std::string run_id;
  ProcessIdentity self;
  LineMaker make_line;  // to the coordinator
  Threads& threads;     // the process's; they outlive the client
};

class ControlClient : public Rendezvous, public RecordSink {
 public:
  struct EpochDecision {
    bool go_on = false;
    Duration elapsed{};  // time since training began
  };

  // Connects and says hello. Returns when the coordinator has answered and, if it asks for that, the offset between the
  // two clocks is known; time stamps of this process are its own clock's. `activity` must outlive the client.
  static Result<std::unique_ptr<ControlClient>> connect(const ControlOptions& options, Activity& activity,
                                                        TimePoint deadline);

  // The run's configuration, as the coordinator sent it.
  virtual const std::string& config_toml() const = 0;
  // The folder of the run's checkpoints; empty if it writes none.
  virtual const std::string& checkpoints() const = 0;
  virtual const CheckpointTerms& checkpoint_terms() const = 0;

  // Sets the timeout of every wait. From now on it also limits the silence of the coordinator and of this process's own
  // work, and determines how often heartbeats are sent.
  virtual void set_timeout(Duration timeout, Duration stall_warning = {}) = 0;

  // Callbacks run on the control thread until their subscription ends: none runs any more once it has ended. A callback
  // must neither register one nor end a subscription. The client must outlive the subscriptions.

  // Called once, when the process must stop; at once if it must already.
  virtual Subscription on_stop(std::function<void()> callback) = 0;
  // Called once for every worker that is lost in this membership epoch; at once for those that are.
  virtual Subscription on_worker_lost(std::function<void(int rank)> callback) = 0;

  // Waits for a membership epoch with a number above `after` that includes this process, which it requests from the
  // coordinator, joins the newest, and returns it. From then on questions that are asked for all its members (epochs,
  // exchanges) fail with cancelled once a newer one is known.
  virtual Result<MembershipEpoch> join_membership(std::int64_t after, TimePoint deadline) = 0;
  // Called once a membership epoch is known that is newer than the one joined; at once if there is one already.
  virtual Subscription on_regroup(std::function<void()> callback) = 0;
  // Reports that this process has lost touch with others, for this reason, and could go on in a new membership epoch.
  // It is not known yet whether there will be one: a wait for it that is in vain fails with `status`.
  virtual void report_trouble(const Status& status) = 0;

  // Reports that others have waited here this long for the pushes of worker `rank`, and would wait in vain.
  virtual void report_missing(int rank, Duration waited) = 0;

  // Called for each checkpoint that is ordered.
  virtual Subscription on_checkpoint_order(
      std::function<void(std::int64_t membership, std::int64_t step)> callback) = 0;
  // Reports the result of `writer`'s part of a checkpoint.
  virtual void report_checkpoint(const std::string& writer, const CheckpointReport& report) = 0;

  // Called before each heartbeat, to report which collective operation this process is in.
  virtual Subscription on_heartbeat(std::function<allreduce::CollectiveState()> state) = 0;

  // Asks whether epoch `epoch` is to be trained. All workers get the same answer; the first one comes when all have
  // asked.
  virtual Result<EpochDecision> ask_epoch(std::int64_t epoch, TimePoint deadline) = 0;
  // A worker's request for batches from the job's queue. It says how many the worker wants; there are none if the queue
  // is empty. One request may be outstanding at a time, in the membership epoch joined. The first one in a membership
  // epoch is `anew`: this worker then has no batches but those in `held`.
  struct BatchRequest {
    std::int64_t wanted = 1;
    bool anew = false;
    std::vector<std::int64_t> held = {};
  };
  virtual void request_batches(const BatchRequest& request) = 0;
  // Returns the numbers of the batches that were given; empty: there are no more. The outer optional is empty if the
  // answer has not arrived yet. With a deadline it waits, and is cancelled like other questions.
  virtual Result<std::optional<BatchRange>> take_batches(std::optional<TimePoint> deadline) = 0;

  // Says that this worker has made its last step, and is about to leave the others. After the answer no process joins
  // any more, so that none finds a peer gone when it connects.
  virtual Status ask_leave(TimePoint deadline) = 0;
  // Says that training is over here, and asks whether the coordinator wants the final weights from this worker.
  virtual Result<bool> ask_finish(TimePoint deadline) = 0;

  // The steps to announce, because faults are due at them.
  virtual const std::vector<std::int64_t>& announced_steps() const = 0;
  // Announces that step `step` is about to begin. Returns once the faults that are due then have been injected: true if
  // one of them is a NaN that this worker is to plant in the step's gradient.
  virtual Result<bool> announce_step(std::int64_t step, TimePoint deadline) = 0;
  // Extends waits for others when a process did not run for a while.
  virtual std::shared_ptr<Patience> patience() const = 0;
  // The faults of this process's data links, as the coordinator orders them.
  virtual std::shared_ptr<const LinkFaults> link_faults() const = 0;

  // Whether this worker must send its weights at points to evaluate. One worker does; while the evaluator is too far
  // behind, none does.
  virtual bool wants_snapshots() const = 0;
  // Sends what this worker's model keeps besides the weights when it reaches point `point`, or the end.
  virtual void send_local_state(std::int64_t point, std::span<const float> state) = 0;
  virtual void send_snapshot(const WeightsSnapshot& stamp, std::span<const float> weights) = 0;
  // Waits for the next snapshot to evaluate; cancelled once there will be no more.
  virtual Result<WeightsSnapshot> next_snapshot() = 0;
  virtual void send_evaluation(const WeightsSnapshot& stamp, const EvaluationScores& scores) = 0;

  // Reports that something here was not a finite number.
  virtual void report_not_finite(const worker::NotFinite& what) = 0;

  // Reports a fact about this process for the record of the run, as in ("collective", "NCCL 2.28.9, Ring").
  virtual void tell(const std::string& name, const std::string& value) = 0;

  // Sends what this process has recorded, in batches; `dropped` events did not fit.
  virtual void send_trace(std::span<const TraceEvent> events, std::int64_t dropped) = 0;

  // Reports how many messages and connections failed their checks here. The count is sent with what follows; it may be
  // reported any number of times before that.
  virtual void count_dropped(std::int64_t messages) = 0;
  // Each is the last message of a process. Queued messages are sent before the client is destroyed.
  virtual void finished(const ServerFigures& figures) = 0;
  virtual void failed(const Status& status) = 0;  // the first one counts
};

}  // namespace syncopate::experiments
