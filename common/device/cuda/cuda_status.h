// What CUDA's calls return, as a Status; and the first failure of a device, kept.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "common/status.h"

namespace syncopate {

// "cudaMemcpyAsync: cudaErrorInvalidValue (invalid argument)"; ok for cudaSuccess. `call` is what returned `result`. No
// memory is resource exhausted; all else, internal.
Status cuda_status(cudaError_t result, const char* call);

// CUDA remembers each thread's last failure until somebody asks, who may take it for his own. To be called when a
// failure has been seen and dealt with.
void forget_last_cuda_error();

// One thread.
class FirstFailure {
 public:
  // `where` begins the message.
  explicit FirstFailure(std::string where) : where_(std::move(where)) {}

  bool none() const { return status_.ok(); }
  const Status& status() const { return status_; }

  // Keeps what `call` returned, if it is the first failure. True for cudaSuccess. A failure of work that was given to
  // the device earlier may be returned by any later call: then it is that one which is named.
  bool keep(cudaError_t result, const char* call);

 private:
  std::string where_;
  Status status_;
};

}  // namespace syncopate
