// NcclCommunicator: one rank's end of an NCCL communicator, made and used so that nothing waits without a deadline.
//
// It follows NCCL's user guide ("Fault Tolerance", "ncclCommGetAsyncError"): the communicator is made not to block, so
// that a call may return ncclInProgress; no other call is made, and nothing is given to the stream, until
// ncclCommGetAsyncError says success. A communicator that has failed is aborted, and only that.
#pragma once

#include <nccl.h>

#include <atomic>
#include <memory>

#include "common/clock.h"
#include "common/status.h"

namespace syncopate::allreduce {

// How a thread waits for what it must ask for again and again, since neither NCCL nor CUDA can be waited for with a
// deadline: it yields at first, for what takes microseconds, and then sleeps shortly between questions.
class Patience {
 public:
  void pause();

 private:
  int pauses_ = 0;
};

// One thread, but for `interrupted`.
class NcclCommunicator {
 public:
  // `gpu` as cudaSetDevice takes it: the current one of the thread that makes the calls. Once `interrupted` is true,
  // waits end. Both arguments that are referred to outlive this.
  NcclCommunicator(int gpu, const Clock& clock, const std::atomic<bool>& interrupted);
  // Leaves the group when all work is done; work that is not, it gives up after some seconds.
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // Once. All ranks, with the id that one of them has made.
  Status join(const ncclUniqueId& id, int rank, int size, TimePoint deadline);
  // All ranks, after join and before any operation: from now on operations are given to the GPU by the thread that
  // makes the call, and no call returns ncclInProgress.
  Status make_direct(int rank, TimePoint deadline);

  // To be handed to NCCL's functions; not to be kept.
  ncclComm_t get() const { return communicator_; }
  // The failure that everything has been given up for; ok as long as there is none.
  const Status& failure() const { return failure_; }

  // Makes of what `call`, a function of NCCL's, has returned a Status, having waited for a call in progress. On failure
  // everything is given up.
  Status settle(ncclResult_t result, const char* call, TimePoint deadline);
  // Whether an operation under way has failed since; if so, everything is given up.
  Status check();
  // Ends all operations under way on the GPU, with undefined results. Returns `why`, which failure() is from then on;
  // if there was a failure before, that one.
  Status give_up(Status why);

 private:
  const int gpu_;
  const Clock& clock_;
  const std::atomic<bool>& interrupted_;
  ncclComm_t communicator_ = nullptr;
  // Where NCCL is to put the communicator that it makes for direct calls, at any time until `communicator_` is aborted.
  std::shared_ptr<ncclComm_t> direct_;
  Status failure_;
};

// "no answer in ncclCommSplit for 30 s"
Status no_answer(const char* what, Duration waited);
// In NCCL's words.
Status nccl_failure(ncclResult_t result, const char* call);

}  // namespace syncopate::allreduce
