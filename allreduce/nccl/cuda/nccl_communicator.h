// NcclCommunicator: one rank's end of an NCCL communicator, used so that nothing waits without a deadline.
//
// It follows NCCL's user guide ("Fault Tolerance", "ncclCommGetAsyncError"): the communicator is non-blocking, so a
// call may return ncclInProgress; no other call is made, and nothing is enqueued on the stream, until
// ncclCommGetAsyncError returns success. A communicator that has failed is aborted, and not used otherwise.
//
// One that is made direct blocks: its calls are made on the caller's thread, and one that does not return is ended by
// ncclCommAbort from another thread, as by the watchdog of PyTorch (ProcessGroupNCCL). NCCL then returns from it, and
// may say success.
#pragma once

#include <nccl.h>

#include <atomic>
#include <memory>
#include <optional>

#include "allreduce/nccl/call_watchdog.h"
#include "common/clock.h"
#include "common/status.h"

namespace syncopate::allreduce {

// Patience: how a thread polls, since neither NCCL nor CUDA can be waited for with a deadline. It yields at first, for
// what takes microseconds, and then sleeps shortly between polls.
class Patience {
 public:
  void pause();

 private:
  int pauses_ = 0;
};

// One thread, except for `interrupted`.
class NcclCommunicator {
 public:
  // `gpu` is numbered as for cudaSetDevice, and is the current one of the thread that makes the calls. A direct call
  // may take `call_timeout`. Once `interrupted` is true, waits end. `clock` and `interrupted` must outlive this object.
  NcclCommunicator(int gpu, Duration call_timeout, const Clock& clock, const std::atomic<bool>& interrupted);
  // Leaves the group when all work is done. Work that is not done is aborted after some seconds.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // Joins the communicator. All ranks call it once, with the id that one of them has made.
  Status join(const ncclUniqueId& id, int rank, int size, TimePoint deadline);
  // All ranks call it after join and before any operation. From now on the calling thread enqueues operations on the
  // GPU, and no call returns ncclInProgress.
  Status make_direct(int rank, TimePoint deadline);

  // Returns what `function`, which calls NCCL on the communicator that it gets, returns; `name` is that of the call. If
  // a direct call had to be ended, failure() says so from then on.
  template <typename Function>
  ncclResult_t call(const char* name, Function function) {
    if (!watchdog_) return function(communicator_);
    watchdog_->begin();
    const ncclResult_t result = function(communicator_);
    return watchdog_->was_ended() ? ended(name) : result;
  }
  // Ends a direct call that does not return. Any thread, once the communicator is joined and direct.
  void interrupt() {
    if (watchdog_) watchdog_->interrupt();
  }
  // The failure for which everything was aborted; ok if there was none.
  const Status& failure() const { return failure_; }

  // Some operation was captured in a graph. Until that is gone NCCL does not return from leaving or aborting
  // (init.cc, commDestroySync), so nobody waits long for it.
  void set_captured() { is_captured_ = true; }

  // Waits if `call`, a function of NCCL's, is in progress, and returns its `result` as a Status. On failure everything
  // is aborted. Returns failure() if there is one.
  Status settle(ncclResult_t result, const char* call, TimePoint deadline);
  // Fails if a running operation has failed meanwhile; then everything is aborted.
  Status check();
  // Aborts all running operations on the GPU, with undefined results. Returns `why`, which failure() is from then on;
  // if there was a failure before, returns that one.
  Status give_up(Status why);

 private:
  ncclResult_t ended(const char* call);

  const int gpu_;
  const Duration call_timeout_;
  const Clock& clock_;
  const std::atomic<bool>& interrupted_;
  ncclComm_t communicator_ = nullptr;
  // Where NCCL stores the communicator that it makes for direct calls, at any time until `communicator_` is aborted.
  std::shared_ptr<ncclComm_t> direct_;
  Status failure_;
  bool is_captured_ = false;
  std::optional<CallWatchdog> watchdog_;  // where calls are direct; uses communicator_
};

// "no answer in ncclCommSplit for 30 s"
Status no_answer(const char* what, Duration waited);
// The failure of `call` in NCCL's words.
Status nccl_failure(ncclResult_t result, const char* call);

}  // namespace syncopate::allreduce
