// BackgroundWriter: writes states on a thread of its own, of low priority, during training. It writes one state at a
// time. Nothing is queued: begin() returns null while a state is still being written. The memory of a state is reused
// for the next one.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "common/thread_failure.h"
#include "common/threads.h"
#include "common/training_state.h"

namespace syncopate::experiments {

class BackgroundWriter {
 public:
  // Runs on the writer's thread; must return soon once `stop` is requested.
  using Write = std::function<void(const TrainingState& state, const std::stop_token& stop)>;

  // `threads`, to which the callers belong, outlives the writer.
  explicit BackgroundWriter(Threads& threads = os_threads());
  // Requests the write in progress to stop, and waits for it.
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  // Returns the state to fill for the next submit, emptied; null while the last one is still being written. One thread
  // calls this and submit. This and finish() rethrow what a write has thrown.
  TrainingState* begin();
  // Hands over the state that begin() has returned, and returns at once.
  void submit(Write write);
  // Waits until nothing is being written any more.
  void finish() { finish_by(TimePoint::max()); }
  // The same, but no longer than until then.
  void finish_by(TimePoint deadline);

 private:
  void run();

  const Clock& clock_;
  TrainingState state_;  // owned by the caller while `write_` is null, else by the thread
  const std::unique_ptr<Monitor> monitor_;
  Write write_;
  bool stops_ = false;
  std::stop_source stop_;  // of the write in progress
  ThreadFailure failure_;
  std::unique_ptr<Threads::Handle> thread_;
};

}  // namespace syncopate::experiments
