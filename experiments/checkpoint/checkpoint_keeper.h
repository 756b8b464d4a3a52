// CheckpointKeeper: the coordinator's part in checkpoints. It carries out the actions of a CheckpointPolicy. It writes
// manifests and removes old checkpoints on a thread of its own, so that a slow disk never keeps the coordinator from
// responding. Everything else runs on the caller's thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/thread_failure.h"
#include "common/threads.h"
#include "experiments/checkpoint/checkpoint_policy.h"
#include "experiments/checkpoint/checkpoint_store.h"

namespace syncopate::experiments {

struct CheckpointKeeperOptions {
  std::string folder;  // folder of checkpoints; it is created
  CheckpointInterval interval;
  bool together = true;                      // whether workers move together, as in CheckpointPolicy
  std::int64_t first_step = 0;               // the step that the run begins with
  std::optional<double> seconds_before = 0;  // of training until that step; none: not known
  int keep = 2;
  std::string run_id;
  std::map<std::string, std::string> facts;
  std::optional<CheckpointKey> key = {};  // authenticates manifests; none: they are not authenticated
};

class CheckpointKeeper {
 public:
  struct Callbacks {
    // Tells all writers to take a checkpoint at `step`, or, if they do not move together, at once.
    std::function<void(std::int64_t membership_epoch, std::int64_t step)> order;
    std::function<void(const std::string& line)> report;
    // Called when a checkpoint is complete, with its folder. May be null.
    std::function<void(const std::string& folder)> completed = nullptr;
  };

  // Fails with resource exhausted if the folder cannot be created. `threads`, to which the caller belongs, outlives it.
  static Result<std::unique_ptr<CheckpointKeeper>> create(CheckpointKeeperOptions options, Callbacks callbacks,
                                                          Threads& threads = os_threads());
  // Finishes the tasks in progress.
  ~CheckpointKeeper();

  // The policy, to which events are reported; see there.
  CheckpointPolicy& policy() { return policy_; }
  // Carries out the actions that are due. Call it after each event, and about every 100 ms. Rethrows what the disk
  // thread has thrown.
  void act(TimePoint now);
  // Call it once training is over and all reports have arrived. Completes the checkpoints that can be completed, and
  // removes the others.
  CheckpointFigures finish(TimePoint now);

 private:
  struct Done {
    std::int64_t step = 0;
    std::int64_t membership_epoch = 0;
    Status status;
  };

  CheckpointKeeper(CheckpointKeeperOptions options, Callbacks callbacks, Threads& threads);

  void carry_out(CheckpointAction action);
  void hear_of_completed();
  void post(std::function<void()> task);
  void wait_until_idle();
  void run();

  const CheckpointKeeperOptions options_;
  const Callbacks callbacks_;
  CheckpointPolicy policy_;
  CheckpointStore store_;  // used by the thread

  const std::unique_ptr<Monitor> monitor_;
  std::deque<std::function<void()>> tasks_;
  bool busy_ = false;
  bool stops_ = false;
  std::vector<Done> done_;
  ThreadFailure failure_;
  std::unique_ptr<Threads::Handle> thread_;
};

// Checks that this process sees the folder that run_experiment has created, which is necessary on several hosts. Fails
// with invalid argument if it does not see the folder of this run.
Status check_shared(const std::string& folder, const std::string& run_id);

}  // namespace syncopate::experiments
