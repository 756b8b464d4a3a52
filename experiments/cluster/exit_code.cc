#include "experiments/cluster/exit_code.h"

namespace syncopate::experiments {

ExitCode exit_code_of(const Status& status) {
  switch (status.code()) {
    case Code::kOk:
      return ExitCode::kSuccess;
    case Code::kInvalidArgument:
      return ExitCode::kUsage;
    case Code::kNotFound:
    case Code::kDataLoss:
      return ExitCode::kData;
    case Code::kResourceExhausted:
      return ExitCode::kOutput;
    case Code::kDeadlineExceeded:
      return ExitCode::kTimeout;
    case Code::kPeerLost:
      return ExitCode::kProcessLost;
    case Code::kCancelled:
      return ExitCode::kInterrupted;
    case Code::kInternal:
      return ExitCode::kInternal;
  }
  return ExitCode::kInternal;
}

}  // namespace syncopate::experiments
