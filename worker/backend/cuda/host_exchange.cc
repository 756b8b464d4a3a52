#include "worker/backend/cuda/host_exchange.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace syncopate::worker {

Status HostExchange::upload(std::span<const std::byte> host, std::span<std::byte> tensor) {
  assert(host.size() == tensor.size());
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> staging, pinned(host.size()));
  std::ranges::copy(host, staging.begin());
  device_.compute().copy_to_device(staging, tensor);
  return wait();
}

Result<std::span<const std::byte>> HostExchange::view(std::span<const std::byte> tensor) {
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<std::byte> staging, pinned(tensor.size()));
  device_.compute().copy_to_host(tensor, staging);
  SYNCOPATE_RETURN_IF_ERROR(wait());
  return std::span<const std::byte>(staging);
}

Result<std::span<std::byte>> HostExchange::pinned(std::size_t bytes) {
  if (pinned_.size() < bytes) {
    SYNCOPATE_RETURN_IF_ERROR(device_.release(std::exchange(pinned_, {}), SteadyClock().now() + timeout_));
    SYNCOPATE_ASSIGN_OR_RETURN(pinned_, device_.allocate_pinned(bytes));
  }
  return pinned_.first(bytes);
}

Status HostExchange::wait() {
  device_.compute().record(*event_);
  return device_.wait(*event_, SteadyClock().now() + timeout_);
}

}  // namespace syncopate::worker
