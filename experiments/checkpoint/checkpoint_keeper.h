// CheckpointKeeper: what the coordinator has to do with checkpoints. It carries out what a CheckpointCourse decides;
// manifests are written, and old checkpoints removed, on a thread of its own, so that a slow disk never keeps the
// coordinator from answering. But for that thread, everything happens on the caller's.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "common/thread_failure.h"
#include "experiments/checkpoint/checkpoint_course.h"
#include "experiments/checkpoint/checkpoint_store.h"

namespace syncopate::experiments {

struct CheckpointKeeperOptions {
  std::string folder;  // of checkpoints; is made
  CheckpointInterval interval;
  bool together = true;         // as CheckpointCourse has it
  std::int64_t first_step = 0;  // that the run begins with
  int keep = 2;
  std::string run_id;
  std::map<std::string, std::string> facts;
  std::optional<CheckpointKey> key = {};  // that authenticates them; none: nothing does
};

class CheckpointKeeper {
 public:
  struct Callbacks {
    // Tells all writers to cut at `step`, or, where they do not move together, at once.
    std::function<void(std::int64_t generation, std::int64_t step)> order;
    std::function<void(const std::string& line)> report;
    // One is complete, in this folder; null: nobody wants to know.
    std::function<void(const std::string& folder)> completed = nullptr;
  };

  // Fails with resource exhausted where the folder cannot be made.
  static Result<std::unique_ptr<CheckpointKeeper>> create(CheckpointKeeperOptions options, Callbacks callbacks);
  // What is under way is finished.
  ~CheckpointKeeper();

  // What the course is told; see there.
  CheckpointCourse& course() { return course_; }
  // Carries out what has been decided. To be called after anything was told, and about every 100 ms. Throws what the
  // thread has thrown that touches the disk.
  void act(TimePoint now);
  // Once training is over and all have said what they have: completes what can be, and removes what cannot.
  CheckpointFigures finish(TimePoint now);

 private:
  struct Done {
    std::int64_t step = 0;
    std::int64_t generation = 0;
    Status status;
  };

  CheckpointKeeper(CheckpointKeeperOptions options, Callbacks callbacks);

  void carry_out(CheckpointAction action);
  void hear_of_completed();
  void post(std::function<void()> task);
  void wait_until_idle();
  void run(const std::stop_token& stop);

  const CheckpointKeeperOptions options_;
  const Callbacks callbacks_;
  CheckpointCourse course_;
  CheckpointStore store_;  // the thread's

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::function<void()>> tasks_;
  bool busy_ = false;
  std::vector<Done> done_;
  ThreadFailure failure_;
  std::jthread thread_;
};

// On several hosts all processes must see the folder that run_experiment has made: invalid argument, saying so, where
// this process does not see the one of this run.
Status check_shared(const std::string& folder, const std::string& run_id);

}  // namespace syncopate::experiments
