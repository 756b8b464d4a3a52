// Converts results of CUDA calls to a Status, and keeps the first failure of a device.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "common/status.h"

namespace syncopate {

// Returns "cudaMemcpyAsync: cudaErrorInvalidValue (invalid argument)"; ok for cudaSuccess. `call` names the call that
// returned `result`. No memory is resource exhausted; all else is internal.
Status cuda_status(cudaError_t result, const char* call);

// Whether work that was running has failed, not a call: nothing can be done on the device any more.
bool breaks_device(cudaError_t result);

// CUDA keeps each thread's last failure until it is queried, and the next query may take it for its own. Call this when
// a failure has been handled.
void forget_last_cuda_error();

// One thread.
class FirstFailure {
 public:
  // `where` is the beginning of the message.
  explicit FirstFailure(std::string where) : where_(std::move(where)) {}

  // Call it before work is given to the device. `work` names it, and must live as long as the program.
  void giving(const char* work) { last_work_ = work; }

  bool none() const { return status_.ok(); }
  const Status& status() const { return status_; }

  // Keeps the result of `call` if it is the first failure. Returns true for cudaSuccess. A failure of work that was
  // enqueued earlier may be returned by any later call: the message then also names the last work given, and says how
  // to find the cause.
  bool keep(cudaError_t result, const char* call);
  // The same for the work that is being given.
  bool keep(cudaError_t result) { return keep(result, last_work_); }

 private:
  std::string where_;
  const char* last_work_ = "nothing";
  Status status_;
};

}  // namespace syncopate
