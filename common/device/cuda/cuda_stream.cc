#include "common/device/cuda/cuda_stream.h"

#include <algorithm>
#include <cassert>

#include "common/device/cuda/cuda_handles.h"
#include "common/device/cuda/tensor_kernels.h"
#include "common/device/cuda/update_kernels.h"

namespace syncopate {

CudaEvent::~CudaEvent() {
  for (cudaEvent_t event : {event_, order_}) {
    if (event != nullptr) failure_.keep(cudaEventDestroy(event), "cudaEventDestroy");
  }
}

cudaError_t CudaEvent::record(cudaStream_t stream, const CudaCapture& capture) {
  recorded_ = true;
  if (!capture.is_on) return cudaEventRecord(event_, stream);
  captured_in_ = capture.number;
  if (order_ == nullptr) {
    if (const cudaError_t made = cudaEventCreateWithFlags(&order_, cudaEventDisableTiming); made != cudaSuccess)
      return made;
  }
  // In this order: what waits for it waits for the taking of the time, too, which is work of the capture.
  const cudaError_t timed = cudaEventRecordWithFlags(event_, stream, cudaEventRecordExternal);
  return timed != cudaSuccess ? timed : cudaEventRecord(order_, stream);
}

cudaError_t CudaEvent::hold(cudaStream_t stream, const CudaCapture& capture) const {
  const bool is_captured = capture.is_on && captured_in_ == capture.number;
  return cudaStreamWaitEvent(stream, is_captured ? order_ : event_, cudaEventWaitDefault);
}

CudaStream::~CudaStream() {
  all_.erase(this);
  failure_.keep(cudaStreamDestroy(stream_), "cudaStreamDestroy");
}

void CudaStream::copy_to_host(std::span<const std::byte> device, std::span<std::byte> host) {
  assert(device.size() == host.size());
  if (!failure_.none() || host.empty()) return;
  failure_.giving("a copy to the host");
  failure_.keep(cudaMemcpyAsync(host.data(), device.data(), host.size(), cudaMemcpyDeviceToHost, stream_),
                "cudaMemcpyAsync (to the host)");
}

void CudaStream::copy_to_device(std::span<const std::byte> host, std::span<std::byte> device) {
  assert(host.size() == device.size());
  if (!failure_.none() || device.empty()) return;
  failure_.giving("a copy to the device");
  failure_.keep(cudaMemcpyAsync(device.data(), host.data(), device.size(), cudaMemcpyHostToDevice, stream_),
                "cudaMemcpyAsync (to the device)");
}

template <typename Launch>
void CudaStream::give(const char* what, Launch launch) {
  if (!failure_.none()) return;
  // A kernel is launched on the current GPU, which must be the stream's.
  if (!failure_.keep(cudaSetDevice(gpu_), "cudaSetDevice")) return;
  failure_.giving(what);
  failure_.keep(launch());
}

void CudaStream::update(const OptimizerConfig& rule, const DeviceUpdate& update) {
  const std::size_t count = update.weights.size();
  assert(update.gradient.size() == count);
  assert(std::ranges::all_of(std::span(update.state.memories).first(state_floats(rule)),
                             [&](std::span<float> memory) { return memory.size() >= count; }));
  assert(update.rounded_weights.empty() ||
         (update.rounded_weights.size() == count && update.rounded_weights.type() == update.gradient.type()));
  if (count > 0) give("the optimizer's update", [&] { return launch_update(rule, update, stream_); });
}

void CudaStream::look_for_overflow(ConstTensorSpan gradients, LossScale& scale) {
  give("the search for overflows", [&] { return launch_look_for_overflow(gradients, &scale, stream_); });
}

void CudaStream::end_step(LossScale& scale) {
  give("the end of a scaled step", [&] { return launch_end_scaled_step(&scale, stream_); });
}

void CudaStream::convert(ConstTensorSpan from, TensorSpan to) {
  assert(from.size() == to.size());
  give("a conversion", [&] { return launch_convert(from, to, stream_); });
}

void CudaStream::record(Event& event) {
  if (!failure_.none()) return;
  failure_.keep(static_cast<CudaEvent&>(event).record(stream_, capture_), "cudaEventRecord");
}

void CudaStream::wait_for(const Event& event) {
  if (!failure_.none()) return;
  failure_.keep(static_cast<const CudaEvent&>(event).hold(stream_, capture_), "cudaStreamWaitEvent");
}

cudaStream_t raw(Stream& stream) { return static_cast<CudaStream&>(stream).get(); }

cudaEvent_t raw(const Event& event) { return static_cast<const CudaEvent&>(event).get(); }

}  // namespace syncopate
