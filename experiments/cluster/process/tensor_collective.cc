#include "experiments/cluster/process/tensor_collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace syncopate::experiments {

Result<std::unique_ptr<TensorCollective>> TensorCollective::make(HostCollective connected, std::size_t most,
                                                                 Duration timeout, const Clock& clock) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<float> memory, connected.collective->allocate(most));
  return std::unique_ptr<TensorCollective>(new TensorCollective(std::move(connected), memory, timeout, clock));
}

template <typename Operation>
Status TensorCollective::on_copy(std::span<float> values, const Operation& operation) {
  const std::span<float> copy = memory_.first(values.size());
  std::ranges::copy(values, copy.begin());
  const Status status = operation(copy, clock_.now() + timeout_);
  if (!status.ok()) {
    const int missed = connected_.collective->missed();
    return missed < 0 ? status : status.in(fmt::format("waiting for worker {}", missed));
  }
  std::ranges::copy(copy, values.begin());
  return status;
}

Status TensorCollective::sum(std::span<float> values) {
  return on_copy(values, [&](std::span<float> copy, TimePoint deadline) {
    return connected_.collective->all_reduce(copy, deadline);
  });
}

Status TensorCollective::broadcast(std::span<float> values, int root) {
  return on_copy(values, [&](std::span<float> copy, TimePoint deadline) {
    return connected_.collective->broadcast(copy, root, deadline);
  });
}

void TensorCollective::interrupt() {
  if (connected_.transport) connected_.transport->interrupt();
  connected_.collective->interrupt();
}

}  // namespace syncopate::experiments
