#include "common/device/cuda/cuda_stream.h"

#include <cassert>

#include "common/device/cuda/convert_kernel.h"
#include "common/device/cuda/cuda_handles.h"
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

void CudaStream::update(const OptimizerConfig& rule, std::span<float> weights, std::span<const float> gradient,
                        const DeviceOptimizerState& state, const update_rule::UpdateConstants* constants) {
  assert(gradient.size() == weights.size());
  assert(state_floats(rule.kind) < 1 || state.first.size() >= weights.size());
  assert(state_floats(rule.kind) < 2 || state.second.size() >= weights.size());
  if (!failure_.none() || weights.empty()) return;
  // A kernel is launched on the current GPU, which must be the stream's.
  if (!failure_.keep(cudaSetDevice(gpu_), "cudaSetDevice")) return;
  failure_.giving("the optimizer's update");
  failure_.keep(launch_update(rule, constants,
                              {.weights = weights.data(),
                               .gradient = gradient.data(),
                               .first = state.first.data(),
                               .second = state.second.data(),
                               .count = weights.size()},
                              stream_));
}

void CudaStream::convert(ConstTensorSpan from, TensorSpan to) {
  assert(from.size() == to.size());
  if (!failure_.none() || from.empty()) return;
  if (!failure_.keep(cudaSetDevice(gpu_), "cudaSetDevice")) return;
  failure_.giving("a conversion");
  failure_.keep(launch_convert(from, to, stream_));
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
