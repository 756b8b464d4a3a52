#include "allreduce/nccl/cuda/nccl_communicator.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <functional>
#include <future>
#include <thread>
#include <utility>

namespace syncopate::allreduce {
namespace {

using namespace std::chrono_literals;

// The limits of ncclCommFinalize, and of all that leaving takes: well above what they need (milliseconds, and up to
// half a second where a thread of NCCL's sleeps in poll).
constexpr Duration kFinalizeLimit = 5s;
constexpr Duration kLeaveLimit = 10s;
// For an abort to begin, whose end whoever owns graphs must not wait for.
constexpr Duration kAbortBegins = 100ms;

// Runs `work`, which must own what it uses, on a thread of its own, with `gpu` as the current one. Waits until it is
// done, or the limit: ncclCommAbort and ncclCommDestroy join NCCL's threads, and one that serves other ranks of this
// host ends only when those have left too (NCCL's proxy.cc). It is left alone then.
void run_within(Duration limit, int gpu, std::function<void()> work) {
  auto done = std::make_shared<std::promise<void>>();
  std::future<void> end = done->get_future();
  std::thread([gpu, done, work = std::move(work)] {
    // NCCL would make its calls on GPU 0, and with them a context there.
    cudaSetDevice(gpu);
    work();
    done->set_value();
  }).detach();
  end.wait_for(limit);
}

void leave(ncclComm_t communicator) {
  ncclResult_t state = ncclCommFinalize(communicator);
  for (Duration waited{}; state == ncclInProgress && waited < kFinalizeLimit; waited += 1ms) {
    std::this_thread::sleep_for(1ms);
    const ncclResult_t asked = ncclCommGetAsyncError(communicator, &state);
    if (asked != ncclSuccess) state = asked;
  }
  if (state == ncclSuccess) {
    ncclCommDestroy(communicator);
  } else {
    ncclCommAbort(communicator);
  }
}

ncclConfig_t configuration(bool blocking) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking ? 1 : 0;
  return config;
}

}  // namespace

void Patience::pause() {
  constexpr int kYields = 200;  // with a question in between, some 200 us
  if (++pauses_ <= kYields) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(20us);
  }
}

Status no_answer(const char* what, Duration waited) {
  return Status::deadline_exceeded(fmt::format("no answer in {} for {:.3g} s", what, seconds(waited)));
}

Status nccl_failure(ncclResult_t result, const char* call) {
  Code code = Code::kInternal;
  switch (result) {
    case ncclRemoteError:
    case ncclSystemError:  // a connection refused or reset, mostly
      code = Code::kPeerLost;
      break;
    case ncclInvalidArgument:
    case ncclInvalidUsage:
      code = Code::kInvalidArgument;
      break;
    default:
      break;
  }
  std::string message = fmt::format("{}: {}", call, ncclGetErrorString(result));
  // The last warning of this process, whatever it was about: the cause, as a rule.
  std::string last = ncclGetLastError(nullptr);
  last.erase(last.find_last_not_of(" \n") + 1);
  if (!last.empty()) message += fmt::format(" ({})", last);
  return Status(code, std::move(message));
}

NcclCommunicator::NcclCommunicator(int gpu, Duration call_timeout, const Clock& clock,
                                   const std::atomic<bool>& interrupted)
    : gpu_(gpu), call_timeout_(call_timeout), clock_(clock), interrupted_(interrupted) {}

NcclCommunicator::~NcclCommunicator() {
  watchdog_.reset();
  if (communicator_ == nullptr) return;
  run_within(kLeaveLimit, gpu_, [communicator = communicator_] { leave(communicator); });
}

Status NcclCommunicator::join(const ncclUniqueId& id, int rank, int size, TimePoint deadline) {
  ncclConfig_t config = configuration(/*blocking=*/false);
  return settle(ncclCommInitRankConfig(&communicator_, size, id, rank, &config), "ncclCommInitRankConfig", deadline);
}

Status NcclCommunicator::make_direct(int rank, TimePoint deadline) {
  ncclConfig_t config = configuration(/*blocking=*/true);
  direct_ = std::make_shared<ncclComm_t>(nullptr);
  // The new communicator is made by the old one, which does not block: so this too can be given up. ncclCommSplit says
  // success, and not ncclInProgress, while it is under way (NCCL 2.28 to 2.30, init.cc): only asking tells its end.
  ncclResult_t result = ncclCommSplit(communicator_, /*color=*/0, /*key=*/rank, direct_.get(), &config);
  if (result == ncclSuccess) result = ncclInProgress;
  SYNCOPATE_RETURN_IF_ERROR(settle(result, "ncclCommSplit", deadline));
  const ncclComm_t old = std::exchange(communicator_, *direct_);
  direct_.reset();
  run_within(kLeaveLimit, gpu_, [old] { leave(old); });
  watchdog_.emplace(call_timeout_, [this] {
    run_within(kLeaveLimit, gpu_, [communicator = communicator_] { ncclCommAbort(communicator); });
  });
  return Status();
}

ncclResult_t NcclCommunicator::ended(const char* call) {
  communicator_ = nullptr;
  failure_ = interrupted_ ? Status::cancelled(fmt::format("interrupted in {}", call)) : no_answer(call, call_timeout_);
  return ncclInternalError;
}

Status NcclCommunicator::settle(ncclResult_t result, const char* call, TimePoint deadline) {
  if (!failure_.ok()) return failure_;
  const TimePoint begin = clock_.now();
  Patience patience;
  while (result == ncclInProgress) {
    if (interrupted_) return give_up(Status::cancelled(fmt::format("interrupted in {}", call)));
    const TimePoint now = clock_.now();
    if (now >= deadline) return give_up(no_answer(call, now - begin));
    patience.pause();
    const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &result);
    if (asked != ncclSuccess) result = asked;
  }
  return result == ncclSuccess ? Status() : give_up(nccl_failure(result, call));
}

Status NcclCommunicator::check() {
  if (communicator_ == nullptr) return failure_;
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &state);
  if (asked != ncclSuccess) state = asked;
  if (state == ncclSuccess || state == ncclInProgress) return Status();
  return give_up(nccl_failure(state, "NCCL"));
}

Status NcclCommunicator::give_up(Status why) {
  if (failure_.ok()) failure_ = std::move(why);
  if (communicator_ != nullptr) {
    run_within(is_captured_ ? kAbortBegins : kLeaveLimit, gpu_, [communicator = communicator_, direct = direct_] {
      ncclCommAbort(communicator);
      if (direct != nullptr && *direct != nullptr) ncclCommAbort(*direct);
    });
    communicator_ = nullptr;
  }
  return failure_;
}

}  // namespace syncopate::allreduce
