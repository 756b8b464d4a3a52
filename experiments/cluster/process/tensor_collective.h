// TensorCollective: the workers that have the parts of the same layers, over a collective of theirs.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "common/clock.h"
#include "experiments/cluster/process/host_collective.h"
#include "worker/tensor/tensor_group.h"

namespace syncopate::experiments {

class TensorCollective final : public worker::TensorGroup {
 public:
  // The collective calls its ranks by their workers' numbers; no sum or broadcast has more than `most` values. The
  // clock outlives it. Fails if there is no memory that the collective can send from.
  static Result<std::unique_ptr<TensorCollective>> make(HostCollective connected, std::size_t most, Duration timeout,
                                                        const Clock& clock);

  int rank() const override { return connected_.collective->rank(); }
  int size() const override { return connected_.collective->size(); }
  Status sum(std::span<float> values) override;
  Status broadcast(std::span<float> values, int root) override;
  TransportCounters counters() const override { return connected_.collective->counters(); }

  // Ends all waits. Any thread.
  void interrupt();

 private:
  TensorCollective(HostCollective connected, std::span<float> memory, Duration timeout, const Clock& clock)
      : connected_(std::move(connected)), memory_(memory), timeout_(timeout), clock_(clock) {}

  // Carries out an operation on a copy of the values in the collective's memory, of which they then are one.
  template <typename Operation>
  Status on_copy(std::span<float> values, const Operation& operation);

  HostCollective connected_;
  const std::span<float> memory_;
  const Duration timeout_;
  const Clock& clock_;
};

}  // namespace syncopate::experiments
