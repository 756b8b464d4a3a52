#include "experiments/cluster/process/cuda/cuda_accelerator.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <fmt/format.h>
#include <nccl.h>
#include <sys/prctl.h>

#include "allreduce/nccl/cuda/nccl_collective.h"
#include "allreduce/nccl/nccl_environment.h"
#include "common/device/cuda/cuda_device.h"
#include "worker/backend/cuda/cuda_backend.h"

namespace syncopate::experiments {
namespace {

class CudaAccelerator final : public Accelerator {
 public:
  Result<std::unique_ptr<Device>> open_device(int gpu) const override {
    // Waits for the GPU poll with short sleeps, which the kernel would otherwise extend by 50 microseconds.
    prctl(PR_SET_TIMERSLACK, 1000);
    return open_cuda_device(gpu);
  }

  std::string libraries() const override {
    int runtime = 0, driver = 0, nccl = 0;
    cudaRuntimeGetVersion(&runtime);
    cudaDriverGetVersion(&driver);
    ncclGetVersion(&nccl);
    const auto version = [](int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); };
    return fmt::format("CUDA {} (driver for {}), cuBLASLt {}, cuDNN {}, NCCL {}.{}.{}", version(runtime),
                       version(driver), cublasLtGetVersion(), cudnnGetVersion(), nccl / 10000, nccl / 100 % 100,
                       nccl % 100);
  }

  Result<std::unique_ptr<worker::ComputeBackend>> make_backend(Device& device,
                                                               worker::Precision precision) const override {
    return worker::make_cuda_backend(device, precision);
  }

  Result<std::unique_ptr<allreduce::DeviceCollective>> connect_collective(int rank, int size, Device& device,
                                                                          Rendezvous& rendezvous, const Clock& clock,
                                                                          Duration timeout) const override {
    const allreduce::NcclOptions options{
        .rank = rank, .size = size, .call_timeout = timeout, .log_file = allreduce::nccl_log_file()};
    return allreduce::connect_nccl(options, device, rendezvous, clock, clock.now() + timeout);
  }
};

}  // namespace

const Accelerator& cuda_accelerator() {
  static const CudaAccelerator accelerator;
  return accelerator;
}

}  // namespace syncopate::experiments
