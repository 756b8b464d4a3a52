#include "experiments/process/cuda/cuda_accelerator.h"

#include "allreduce/cuda/nccl_collective.h"
#include "common/device/cuda/cuda_device.h"
#include "worker/backend/cuda/cuda_backend.h"

namespace syncopate::experiments {
namespace {

class CudaAccelerator final : public Accelerator {
 public:
  Result<std::unique_ptr<Device>> open_device(int gpu) const override { return open_cuda_device(gpu); }

  Result<std::unique_ptr<worker::ComputeBackend>> make_backend(Device& device,
                                                               worker::Precision precision) const override {
    return worker::make_cuda_backend(device, precision);
  }

  Result<std::unique_ptr<allreduce::DeviceCollective>> connect_collective(int rank, int size, Device& device,
                                                                          Rendezvous& rendezvous, const Clock& clock,
                                                                          Duration timeout) const override {
    return allreduce::connect_nccl({.rank = rank, .size = size}, device, rendezvous, clock, clock.now() + timeout);
  }
};

}  // namespace

const Accelerator& cuda_accelerator() {
  static const CudaAccelerator accelerator;
  return accelerator;
}

}  // namespace syncopate::experiments
