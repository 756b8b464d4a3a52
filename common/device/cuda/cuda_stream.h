// Streams and events of a CUDA device.
#pragma once

#include <cuda_runtime_api.h>

#include <set>

#include "common/device/cuda/cuda_status.h"
#include "common/device/device.h"

namespace syncopate {

// Owns its CUDA event, which records the device's time.
class CudaEvent final : public Event {
 public:
  CudaEvent(cudaEvent_t event, FirstFailure& failure) : event_(event), failure_(failure) {}
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  cudaEvent_t get() const { return event_; }
  // Whether it was ever recorded; only then it has a time.
  bool recorded() const { return recorded_; }
  void set_recorded() { recorded_ = true; }

 private:
  const cudaEvent_t event_;
  FirstFailure& failure_;
  bool recorded_ = false;
};

// Owns its stream. Once anything of the device has failed, new work is ignored.
class CudaStream final : public Stream {
 public:
  // Is one of `all`, the streams of its device, as long as it lives.
  CudaStream(int gpu, cudaStream_t stream, FirstFailure& failure, std::set<Stream*>& all)
      : gpu_(gpu), stream_(stream), failure_(failure), all_(all) {
    all_.insert(this);
  }
  // Work already enqueued goes on.
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  cudaStream_t get() const { return stream_; }

  void copy_to_host(std::span<const std::byte> device, std::span<std::byte> host) override;
  void copy_to_device(std::span<const std::byte> host, std::span<std::byte> device) override;
  void update(const OptimizerConfig& rule, std::span<float> weights, std::span<const float> gradient,
              const DeviceOptimizerState& state, const update_rule::UpdateConstants* constants) override;
  void record(Event& event) override;
  void wait_for(const Event& event) override;

 private:
  const int gpu_;
  const cudaStream_t stream_;
  FirstFailure& failure_;
  std::set<Stream*>& all_;
};

}  // namespace syncopate
