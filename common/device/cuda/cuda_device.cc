#include "common/device/cuda/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "common/device/cuda/cuda_handles.h"
#include "common/device/cuda/cuda_status.h"
#include "common/device/cuda/cuda_stream.h"
#include "common/device/cuda/update_kernels.h"
#include "common/device/gpu_inventory.h"
#include "common/text/format.h"

namespace syncopate {
namespace {

// What is nearly done is asked after at once; for all else the host sleeps until the device wakes it.
constexpr Duration kAskAtOnce = std::chrono::microseconds(50);
// A device that has failed wakes nobody (CUDA Runtime API, cudaLaunchHostFunc): it is asked so often.
constexpr Duration kAskAgain = std::chrono::milliseconds(50);
constexpr Duration kAskOften = std::chrono::milliseconds(1);  // where nobody will wake the host

// Wakes the thread that waits for an event: CUDA has no wait with a deadline.
class Alarm {
 public:
  // Asks to be rung behind all work of the stream, which must be followed by wait(). There is one at most: those of
  // waits in vain would fill the queue of the stream, and the call would then wait without a deadline.
  cudaError_t set(cudaStream_t stream) {
    {
      const std::lock_guard hold(mutex_);
      is_set_ = true;
    }
    return cudaLaunchHostFunc(
        stream, [](void* alarm) { static_cast<Alarm*>(alarm)->ring(); }, this);
  }
  bool is_set() {
    const std::lock_guard hold(mutex_);
    return is_set_;
  }
  // Waits until it has rung, or until `until`.
  void wait(TimePoint until) {
    std::unique_lock hold(mutex_);
    rang_.wait_until(hold, until, [this] { return !is_set_; });
  }

 private:
  // On a thread of CUDA's.
  void ring() {
    const std::lock_guard hold(mutex_);
    is_set_ = false;
    rang_.notify_one();
  }

  std::mutex mutex_;
  std::condition_variable rang_;
  bool is_set_ = false;
};

class CudaPinnedRange final : public PinnedRange {
 public:
  CudaPinnedRange(std::span<std::byte> host, FirstFailure& failure) : host_(host), failure_(failure) {}
  ~CudaPinnedRange() override {
    if (!host_.empty()) failure_.keep(cudaHostUnregister(host_.data()), "cudaHostUnregister");
  }
  CudaPinnedRange(const CudaPinnedRange&) = delete;
  CudaPinnedRange& operator=(const CudaPinnedRange&) = delete;

 private:
  const std::span<std::byte> host_;
  FirstFailure& failure_;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(int index, const Gpu& gpu) : index_(index), description_(describe(gpu, index)), failure_(description_) {}
  ~CudaDevice() override;

  Status open(const Gpu& gpu);
  int index() const { return index_; }
  FirstFailure& failure() { return failure_; }

  std::string description() const override { return description_; }

  Result<std::span<std::byte>> allocate(std::size_t bytes) override;
  Result<std::span<std::byte>> allocate_pinned(std::size_t bytes) override;
  Result<std::unique_ptr<PinnedRange>> pin(std::span<std::byte> host) override;
  Status release(std::span<std::byte> memory, TimePoint deadline) override;
  DeviceMemory memory() const override;

  Stream& compute() override { return *compute_; }
  Result<std::unique_ptr<Stream>> make_stream() override;
  Result<std::unique_ptr<Event>> make_event() override;

  Status begin_capture() override;
  Result<std::unique_ptr<Graph>> end_capture() override;
  void launch(Graph& graph) override;

  bool done(const Event& event) override;
  Duration between(const Event& begin, const Event& end) override;
  Status wait(const Event& event, TimePoint deadline) override;

  Status status() const override { return failure_.status(); }

 private:
  // Whether anything may be asked of CUDA: nothing has failed, and this GPU is the thread's current one.
  bool ready() { return failure_.none() && failure_.keep(cudaSetDevice(index_), "cudaSetDevice"); }
  Status no_room(const char* kind, std::size_t bytes) const;
  Status wait_for_all_streams(TimePoint deadline);

  const int index_;
  const std::string description_;
  FirstFailure failure_;
  std::vector<std::span<std::byte>> memory_;
  std::vector<std::span<std::byte>> pinned_memory_;
  bool was_refused_ = false;  // memory_ could not grow
  CudaCapture capture_;
  std::set<Stream*> streams_;  // those that live
  std::unique_ptr<Stream> compute_;
  std::unique_ptr<Stream> wakes_;  // on which nothing is done but to wait for events and to ring
  Alarm alarm_;
  const Event* alarm_event_ = nullptr;  // for which it was set last
};

Status CudaDevice::open(const Gpu& gpu) {
  if (!ready()) return status();
  const cudaError_t loaded = load_update_kernels();
  if (loaded == cudaErrorNoKernelImageForDevice || loaded == cudaErrorInvalidDeviceFunction) {
    forget_last_cuda_error();
    return Status::not_found(fmt::format("{}: this program holds no code for its compute capability, {}.{}",
                                         description_, gpu.major, gpu.minor));
  }
  if (!failure_.keep(loaded, "cudaFuncGetAttributes")) return status();
  SYNCOPATE_ASSIGN_OR_RETURN(compute_, make_stream());
  SYNCOPATE_ASSIGN_OR_RETURN(wakes_, make_stream());
  return {};
}

// Memory must not go while work on it is under way. What CUDA says here is of no use to anybody any more.
CudaDevice::~CudaDevice() {
  static_cast<void>(cudaSetDevice(index_));
  static_cast<void>(cudaDeviceSynchronize());
  for (const std::span<std::byte> memory : memory_) static_cast<void>(cudaFree(memory.data()));
  for (const std::span<std::byte> memory : pinned_memory_) static_cast<void>(cudaFreeHost(memory.data()));
  forget_last_cuda_error();
}

Status CudaDevice::no_room(const char* kind, std::size_t bytes) const {
  forget_last_cuda_error();
  std::size_t left = 0, total = 0;
  std::string message =
      fmt::format("{}: no room for {} of {}", description_, format_bytes(static_cast<double>(bytes)), kind);
  if (cudaMemGetInfo(&left, &total) == cudaSuccess) {
    message += fmt::format("; {} of the {} of its own memory are free", format_bytes(static_cast<double>(left)),
                           format_bytes(static_cast<double>(total)));
  } else {
    forget_last_cuda_error();
  }
  return Status::resource_exhausted(message);
}

Result<std::span<std::byte>> CudaDevice::allocate(std::size_t bytes) {
  if (!ready()) return status();
  if (bytes == 0) return std::span<std::byte>();
  void* memory = nullptr;
  const cudaError_t result = cudaMalloc(&memory, bytes);
  if (result == cudaErrorMemoryAllocation) {
    was_refused_ = true;
    return no_room("memory", bytes);
  }
  if (!failure_.keep(result, "cudaMalloc")) return status();
  memory_.emplace_back(static_cast<std::byte*>(memory), bytes);
  // A fill is work of the default stream, and returns before it is done; a device's own streams do not wait for it.
  if (!failure_.keep(cudaMemset(memory, 0, bytes), "cudaMemset")) return status();
  if (!failure_.keep(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize")) return status();
  return memory_.back();
}

Result<std::span<std::byte>> CudaDevice::allocate_pinned(std::size_t bytes) {
  if (!ready()) return status();
  if (bytes == 0) return std::span<std::byte>();
  void* memory = nullptr;
  const cudaError_t result = cudaHostAlloc(&memory, bytes, cudaHostAllocDefault);
  if (result == cudaErrorMemoryAllocation) return no_room("pinned memory of the host", bytes);
  if (!failure_.keep(result, "cudaHostAlloc")) return status();
  pinned_memory_.emplace_back(static_cast<std::byte*>(memory), bytes);
  std::memset(memory, 0, bytes);
  return pinned_memory_.back();
}

Result<std::unique_ptr<PinnedRange>> CudaDevice::pin(std::span<std::byte> host) {
  if (!ready()) return status();
  if (!host.empty()) {
    // What cannot be pinned does the device no harm: the caller is told, and nothing is kept.
    const cudaError_t result = cudaHostRegister(host.data(), host.size(), cudaHostRegisterDefault);
    if (result != cudaSuccess) {
      forget_last_cuda_error();
      return cuda_status(result, "cudaHostRegister")
          .in(fmt::format("{}: pinning {}", description_, format_bytes(static_cast<double>(host.size()))));
    }
  }
  return std::unique_ptr<PinnedRange>(std::make_unique<CudaPinnedRange>(host, failure_));
}

// CUDA's own calls wait too, but without a deadline, and a collective with a lost peer is never done.
Status CudaDevice::release(std::span<std::byte> memory, TimePoint deadline) {
  if (memory.empty()) return status();
  SYNCOPATE_RETURN_IF_ERROR(wait_for_all_streams(deadline));
  const auto was_here = [memory](std::vector<std::span<std::byte>>& all) {
    return std::erase_if(all, [memory](std::span<std::byte> one) { return one.data() == memory.data(); }) == 1;
  };
  if (was_here(memory_)) {
    failure_.keep(cudaFree(memory.data()), "cudaFree");
  } else if (was_here(pinned_memory_)) {
    failure_.keep(cudaFreeHost(memory.data()), "cudaFreeHost");
  } else {
    return Status::internal(description_ + ": memory is released that is none of its own");
  }
  return status();
}

Status CudaDevice::wait_for_all_streams(TimePoint deadline) {
  for (Stream* const stream : streams_) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::unique_ptr<Event> end, make_event());
    stream->record(*end);
    SYNCOPATE_RETURN_IF_ERROR(wait(*end, deadline));
  }
  return status();
}

DeviceMemory CudaDevice::memory() const {
  DeviceMemory memory{.was_refused = was_refused_};
  for (const std::span<std::byte> one : memory_) memory.allocated += one.size();
  std::size_t total = 0;
  if (cudaMemGetInfo(&memory.free, &total) != cudaSuccess) forget_last_cuda_error();
  return memory;
}

Result<std::unique_ptr<Stream>> CudaDevice::make_stream() {
  if (!ready()) return status();
  cudaStream_t stream = nullptr;
  // Non-blocking: it neither waits for the default stream nor holds it up.
  const cudaError_t result = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (!failure_.keep(result, "cudaStreamCreateWithFlags")) return status();
  return std::unique_ptr<Stream>(std::make_unique<CudaStream>(index_, stream, failure_, capture_, streams_));
}

Result<std::unique_ptr<Event>> CudaDevice::make_event() {
  if (!ready()) return status();
  cudaEvent_t event = nullptr;
  // Takes the time; asking after it never blocks.
  if (!failure_.keep(cudaEventCreateWithFlags(&event, cudaEventDefault), "cudaEventCreateWithFlags")) return status();
  return std::unique_ptr<Event>(std::make_unique<CudaEvent>(event, failure_));
}

Status CudaDevice::begin_capture() {
  if (!ready()) return status();
  capture_ = {.is_on = true, .number = capture_.number + 1};
  // What other threads do, NCCL's and those of other devices, does not concern it.
  failure_.keep(cudaStreamBeginCapture(raw(*compute_), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  return status();
}

Result<std::unique_ptr<Graph>> CudaDevice::end_capture() {
  capture_.is_on = false;
  cudaGraph_t captured = nullptr;
  if (!failure_.keep(cudaStreamEndCapture(raw(*compute_), &captured), "cudaStreamEndCapture")) return status();
  cudaGraphExec_t graph = nullptr;
  if (failure_.none()) failure_.keep(cudaGraphInstantiate(&graph, captured, 0), "cudaGraphInstantiate");
  failure_.keep(cudaGraphDestroy(captured), "cudaGraphDestroy");
  if (!failure_.none()) return status();
  return std::unique_ptr<Graph>(std::make_unique<CudaGraph>(graph, failure_));
}

void CudaDevice::launch(Graph& graph) {
  if (!ready()) return;
  failure_.giving("a step's graph");
  failure_.keep(cudaGraphLaunch(static_cast<CudaGraph&>(graph).get(), raw(*compute_)), "cudaGraphLaunch");
}

bool CudaDevice::done(const Event& event) {
  if (!failure_.none()) return true;
  const cudaError_t result = cudaEventQuery(raw(event));
  if (result == cudaErrorNotReady) return false;
  failure_.keep(result, "cudaEventQuery");
  return true;
}

Duration CudaDevice::between(const Event& begin, const Event& end) {
  if (!failure_.none()) return {};
  if (!static_cast<const CudaEvent&>(begin).recorded() || !static_cast<const CudaEvent&>(end).recorded()) return {};
  float milliseconds = 0;
  if (!failure_.keep(cudaEventElapsedTime(&milliseconds, raw(begin), raw(end)), "cudaEventElapsedTime")) return {};
  return from_seconds(static_cast<double>(milliseconds) * 1e-3);
}

Status CudaDevice::wait(const Event& event, TimePoint deadline) {
  const SteadyClock clock;
  const TimePoint patience = clock.now() + kAskAtOnce;
  for (;;) {
    const TimePoint now = clock.now();
    if (done(event)) return status();
    if (now >= deadline) return Status::deadline_exceeded(description_ + ": its work was not done in time");
    if (now < patience) {
      std::this_thread::yield();
      continue;
    }
    // One that is set for another event, which was waited for in vain, rings at some time or never.
    if (!alarm_.is_set()) {
      if (!ready()) return status();
      wakes_->wait_for(event);
      if (!failure_.keep(alarm_.set(raw(*wakes_)), "cudaLaunchHostFunc")) return status();
      alarm_event_ = &event;
    }
    alarm_.wait(std::min(now + (alarm_event_ == &event ? kAskAgain : kAskOften), deadline));
  }
}

}  // namespace

Result<std::unique_ptr<Device>> open_cuda_device(int index) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::vector<Gpu> gpus, find_gpus());
  if (index < 0 || index >= static_cast<int>(gpus.size())) {
    return Status::not_found(fmt::format("GPU {} is not there: this machine has 0 to {}", index, gpus.size() - 1));
  }
  const Gpu& gpu = gpus[static_cast<std::size_t>(index)];
  auto device = std::make_unique<CudaDevice>(index, gpu);
  SYNCOPATE_RETURN_IF_ERROR(device->open(gpu));
  return std::unique_ptr<Device>(std::move(device));
}

int gpu_index(const Device& device) { return static_cast<const CudaDevice&>(device).index(); }

FirstFailure& failure_of(Device& device) { return static_cast<CudaDevice&>(device).failure(); }

}  // namespace syncopate
