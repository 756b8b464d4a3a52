// Streams and events of a CUDA device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <set>

#include "common/device/cuda/cuda_status.h"
#include "common/device/device.h"

namespace syncopate {

// Whether a device's streams capture, and which of its captures it is, from 1 on.
struct CudaCapture {
  bool is_on = false;
  std::uint64_t number = 0;
};

// Owns its CUDA event, which records the device's time, and one that orders streams within a capture, where CUDA's
// events do either (CUDA Runtime API, cudaEventRecordWithFlags).
class CudaEvent final : public Event {
 public:
  CudaEvent(cudaEvent_t event, FirstFailure& failure) : event_(event), failure_(failure) {}
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;

  cudaEvent_t get() const { return event_; }
  // Whether it was ever recorded; only then it has a time.
  bool recorded() const { return recorded_; }
  // Records it on a stream, which captures if `capture` is on. Returns what CUDA said first.
  cudaError_t record(cudaStream_t stream, const CudaCapture& capture);
  // Makes a stream wait for it.
  cudaError_t hold(cudaStream_t stream, const CudaCapture& capture) const;

 private:
  const cudaEvent_t event_;
  FirstFailure& failure_;
  bool recorded_ = false;
  cudaEvent_t order_ = nullptr;    // in captures; made for the first
  std::uint64_t captured_in_ = 0;  // the capture in which it was recorded last
};

// Owns its stream. Once anything of the device has failed, new work is ignored.
class CudaStream final : public Stream {
 public:
  // Is one of `all`, the streams of its device, as long as it lives.
  CudaStream(int gpu, cudaStream_t stream, FirstFailure& failure, const CudaCapture& capture, std::set<Stream*>& all)
      : gpu_(gpu), stream_(stream), failure_(failure), capture_(capture), all_(all) {
    all_.insert(this);
  }
  // Work already enqueued goes on.
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  cudaStream_t get() const { return stream_; }

  void copy_to_host(std::span<const std::byte> device, std::span<std::byte> host) override;
  void copy_to_device(std::span<const std::byte> host, std::span<std::byte> device) override;
  void update(const OptimizerConfig& rule, const DeviceUpdate& update) override;
  void look_for_overflow(ConstTensorSpan gradients, LossScale& scale) override;
  void end_step(LossScale& scale) override;
  void convert(ConstTensorSpan from, TensorSpan to) override;
  void record(Event& event) override;
  void wait_for(const Event& event) override;

 private:
  // Launches kernels on the stream's GPU, unless something has failed; `what` names them.
  template <typename Launch>
  void give(const char* what, Launch launch);

  const int gpu_;
  const cudaStream_t stream_;
  FirstFailure& failure_;
  const CudaCapture& capture_;
  std::set<Stream*>& all_;
};

// Owns what CUDA launches.
class CudaGraph final : public Graph {
 public:
  CudaGraph(cudaGraphExec_t graph, FirstFailure& failure) : graph_(graph), failure_(failure) {}
  ~CudaGraph() override { failure_.keep(cudaGraphExecDestroy(graph_), "cudaGraphExecDestroy"); }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  cudaGraphExec_t get() const { return graph_; }

 private:
  const cudaGraphExec_t graph_;
  FirstFailure& failure_;
};

}  // namespace syncopate
