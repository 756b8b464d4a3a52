#include "common/device/cuda/cuda_status.h"

#include <fmt/format.h>

namespace syncopate {
namespace {

// What to do about a failure of work that was running; null for one of a call.
const char* advice_on(cudaError_t result) {
  switch (result) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorHardwareStackError:
      return "the card is at fault, not the program: nvidia-smi -q -d ECC";
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorAssert:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
      return "earlier work may be at fault: CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer shows which";
    default:
      return nullptr;
  }
}

}  // namespace

Status cuda_status(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return {};
  const Code code = result == cudaErrorMemoryAllocation ? Code::kResourceExhausted : Code::kInternal;
  return Status(code, fmt::format("{}: {} ({})", call, cudaGetErrorName(result), cudaGetErrorString(result)));
}

bool breaks_device(cudaError_t result) { return advice_on(result) != nullptr; }

void forget_last_cuda_error() { static_cast<void>(cudaGetLastError()); }

bool FirstFailure::keep(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return true;
  forget_last_cuda_error();
  if (!none()) return false;
  status_ = cuda_status(result, call).in(where_);
  if (const char* const advice = advice_on(result)) {
    status_ = Status(status_.code(),
                     fmt::format("{}; the last work given was {}; {}", status_.message(), last_work_, advice));
  }
  return false;
}

}  // namespace syncopate
