// HostBackend: the common part of backends that compute on the CPU. Tensors lie in the host's own memory.
#pragma once

#include <algorithm>
#include <vector>

#include "common/os/aligned_buffer.h"
#include "worker/backend/compute_backend.h"

namespace syncopate::worker {

class HostBackend : public ComputeBackend {
 public:
  std::span<std::byte> allocate(std::size_t bytes) override {
    AlignedBuffer& buffer = memory_.emplace_back((bytes + sizeof(float) - 1) / sizeof(float));
    return std::as_writable_bytes(buffer.span()).first(bytes);
  }
  void upload(In host, Out tensor) override { std::ranges::copy(host, tensor.begin()); }
  In host_view(In tensor) override { return tensor; }
  Status status() const override { return {}; }
  LossAndCorrect loss() override { return loss_; }

 protected:
  LossAndCorrect loss_;  // of the last softmax_cross_entropy

 private:
  std::vector<AlignedBuffer> memory_;
};

}  // namespace syncopate::worker
