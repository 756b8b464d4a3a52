// BackgroundWriter: writes states on a thread of its own, of low priority, while training goes on. At most one is on
// its way: whoever comes while another is still being written is told so, and nothing is queued. The memory of states
// is kept from one to the next.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

#include "common/thread_failure.h"
#include "common/training_state.h"

namespace syncopate::experiments {

class BackgroundWriter {
 public:
  // On the writer's thread; is to return soon once `stop` asks for it.
  using Write = std::function<void(const TrainingState& state, const std::stop_token& stop)>;

  BackgroundWriter();
  // What is being written is told to stop, and waited for.
  ~BackgroundWriter();
  BackgroundWriter(const BackgroundWriter&) = delete;
  BackgroundWriter& operator=(const BackgroundWriter&) = delete;

  // The state to fill for the next submit, emptied; null while the last one is still being written. One thread calls
  // this and submit. This and finish() throw what a write has thrown.
  TrainingState* begin();
  // Hands over the state that begin() has given; returns at once.
  void submit(Write write);
  // Until nothing is being written any more.
  void finish();

 private:
  void run(const std::stop_token& stop);

  TrainingState state_;  // the caller's while `write_` is null, else the thread's
  std::mutex mutex_;
  std::condition_variable_any changed_;
  Write write_;
  ThreadFailure failure_;
  std::jthread thread_;
};

}  // namespace syncopate::experiments
