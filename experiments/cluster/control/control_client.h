// ControlClient: a process's line to the coordinator. It is the process's rendezvous, takes its step records, asks what
// is to be decided for all, sends heartbeats that say what the process is doing, and ends the process's waits when the
// coordinator says stop or is gone itself.
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
#include "common/step_record.h"
#include "common/transport/link_faults.h"
#include "experiments/checkpoint/checkpoint_course.h"
#include "experiments/checkpoint/checkpoint_terms.h"
#include "experiments/cluster/control/batch_range.h"
#include "experiments/cluster/control/control_identity.h"
#include "experiments/cluster/control/generation.h"
#include "experiments/cluster/control/test_figures.h"
#include "experiments/cluster/control/weights_snapshot.h"

namespace syncopate::experiments {

struct ControlOptions {
  std::string address;  // of the coordinator
  std::string run_id;
  RunKeys keys;
  ProcessIdentity self = {};
};

class ControlClient : public Rendezvous, public RecordSink {
 public:
  struct EpochDecision {
    bool go_on = false;
    Duration elapsed{};  // since training began
  };

  // Connects and says hello; returns when the coordinator has answered and, where it asks for that, knows how far the
  // two clocks are apart: stamps of this process are its own clock's. `activity` must outlive the client.
  static Result<std::unique_ptr<ControlClient>> connect(const ControlOptions& options, Activity& activity,
                                                        TimePoint deadline);

  // The run's configuration, as the coordinator sent it.
  virtual const std::string& config_toml() const = 0;
  // The folder of its checkpoints; empty where it writes none.
  virtual const std::string& checkpoints() const = 0;
  virtual const CheckpointTerms& checkpoint_terms() const = 0;

  // The deadline of every wait: silence of the coordinator, and of this process's own work, is judged by it, from now
  // on, and heartbeats come as often as it asks for.
  virtual void set_timeout(Duration timeout, Duration stall_warning = {}) = 0;

  // Called on the control thread, once each, when the process is to stop and for every worker that is lost in this
  // generation; at once where that was before. A null function takes the callback back: it does not run any more when
  // the call returns.
  virtual void on_stop(std::function<void()> callback) = 0;
  virtual void on_worker_lost(std::function<void(int rank)> callback) = 0;

  // The newest generation with a number above `after` that this process takes part in; waits until there is one, which
  // the coordinator is asked for. From then on this process is in it: what is asked for all its members (epochs,
  // exchanges) fails with cancelled once a newer one is known.
  virtual Result<Generation> join_generation(std::int64_t after, TimePoint deadline) = 0;
  // Called on the control thread once a generation is known that is newer than the one joined; at once where that is so
  // now. A null function takes it back, as above.
  virtual void on_regroup(std::function<void()> callback) = 0;
  // This process has lost touch with others, for this reason, and could go on in a new generation. It stays to be seen
  // whether there will be one: whoever waits for it in vain fails with `status`.
  virtual void report_trouble(const Status& status) = 0;

  // Others have waited here for the pushes of worker `rank` so long, and would wait in vain.
  virtual void report_missing(int rank, Duration waited) = 0;

  // Called on the control thread for each checkpoint that is ordered. A null function takes it back, as above.
  virtual void on_checkpoint_order(std::function<void(std::int64_t generation, std::int64_t step)> callback) = 0;
  // What became of `writer`'s part of a checkpoint.
  virtual void report_checkpoint(const std::string& writer, const CheckpointReport& report) = 0;

  // Asked on the control thread before each heartbeat, which then says it, too: which collective operation this process
  // is in. A null function takes it back: it does not run any more when the call returns.
  virtual void on_heartbeat(std::function<allreduce::CollectiveState()> state) = 0;

  // Shall epoch `epoch` be trained? The same answer for all workers; the first one comes when all have asked.
  virtual Result<EpochDecision> ask_epoch(std::int64_t epoch, TimePoint deadline) = 0;
  // A worker's draw from the job's queue of batches: so many are wanted, none where there are no more. One request is
  // under way at a time, of the generation joined. The first in a generation is `anew`: this worker then has none but
  // those it holds.
  struct BatchRequest {
    std::int64_t wanted = 1;
    bool anew = false;
    std::vector<std::int64_t> held = {};
  };
  virtual void request_batches(const BatchRequest& request) = 0;
  // The numbers of the batches that were given; empty: there are no more. Outer none: the answer is not here yet. With
  // a deadline it waits, and is cancelled as other questions are.
  virtual Result<std::optional<BatchRange>> take_batches(std::optional<TimePoint> deadline) = 0;

  // This worker has made its last step, and is about to leave the others: from the answer on nobody comes in, so that
  // none of them is gone when somebody connects.
  virtual Status ask_leave(TimePoint deadline) = 0;
  // Training is over here: does the coordinator want the final weights from this worker?
  virtual Result<bool> ask_finish(TimePoint deadline) = 0;

  // Which steps are to be announced: faults are due at them.
  virtual const std::vector<std::int64_t>& announced_steps() const = 0;
  // Step `step` is about to begin. Returns when what is to go wrong then has been done.
  virtual Status announce_step(std::int64_t step, TimePoint deadline) = 0;
  // How long waits for others are to last where somebody did not run for a while.
  virtual std::shared_ptr<Patience> patience() const = 0;
  // What goes wrong on this process's data links, as the coordinator says.
  virtual std::shared_ptr<const LinkFaults> link_faults() const = 0;

  // Whether weights of this worker are wanted at points to evaluate: of one worker they are, and while the evaluator is
  // too far behind, of none.
  virtual bool wants_snapshots() const = 0;
  // What this worker's model keeps beside the weights, as it has come to point `point`, or to the end.
  virtual void send_local_state(std::int64_t point, std::span<const float> state) = 0;
  virtual void send_snapshot(const WeightsSnapshot& stamp, std::span<const float> weights) = 0;
  // The next snapshot to evaluate; cancelled once there will be no more.
  virtual Result<WeightsSnapshot> next_snapshot() = 0;
  virtual void send_evaluation(const WeightsSnapshot& stamp, double accuracy, double loss,
                               const TestFigures& figures) = 0;

  // Something about this process that the record of the run is to show, as in ("collective", "NCCL 2.28.9, Ring").
  virtual void tell(const std::string& name, const std::string& value) = 0;

  // So many messages and connections did not check out here: told with what follows. Any number of times, before it.
  virtual void count_dropped(std::int64_t messages) = 0;
  // The last word of a process. What is queued is sent before the client is destroyed.
  virtual void finished(std::int64_t updates, std::int64_t pushes, std::int64_t dropped) = 0;
  virtual void failed(const Status& status) = 0;  // the first one counts
};

}  // namespace syncopate::experiments
