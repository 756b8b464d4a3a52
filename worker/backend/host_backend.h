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
    allocated_ += bytes;
    AlignedBuffer& buffer = memory_.emplace_back((bytes + sizeof(float) - 1) / sizeof(float));
    return std::as_writable_bytes(buffer.span()).first(bytes);
  }
  std::size_t allocated() const override { return allocated_; }
  void upload(ConstFloats host, Out tensor) override { std::ranges::copy(host, tensor.begin()); }
  ConstFloats host_view(In tensor) override { return tensor; }
  void convert(ConstFloats x, Out y) override { std::ranges::copy(x, y.begin()); }
  Status status() const override { return {}; }
  LossAndCorrect loss(std::size_t /*turn*/) override { return loss_; }
  // All probabilities: a head's stay in the cache.
  std::size_t attention_storage(const AttentionShape& shape) const override { return shape.probabilities(); }
  void squared_error(In outputs, ConstFloats targets, std::span<const int> labels, double weight,
                     Out doutputs) override {
    loss_ = {};
    const double share = weight / static_cast<double>(labels.size());
    for (std::size_t n = 0; n < labels.size(); ++n) {
      const double error = labels[n] < 0 ? 0 : static_cast<double>(outputs[n]) - static_cast<double>(targets[n]);
      loss_.loss += error * error * share;
      if (!doutputs.empty()) doutputs[n] = static_cast<float>(2 * error * share);
    }
  }

 protected:
  LossAndCorrect loss_;  // of the last softmax_cross_entropy or squared_error

 private:
  std::vector<AlignedBuffer> memory_;
  std::size_t allocated_ = 0;
};

}  // namespace syncopate::worker
