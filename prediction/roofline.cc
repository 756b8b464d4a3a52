#include "prediction/roofline.h"

#include <algorithm>
#include <functional>

namespace syncopate::prediction {

bool is_compute_bound(const DeviceOperation& operation, const PeakRates& peak) {
  return operation.flops / peak.flops_per_second > operation.bytes / peak.bytes_per_second;
}

double least_seconds(const DeviceOperation& operation, const PeakRates& peak) {
  return std::max(operation.flops / peak.flops_per_second, operation.bytes / peak.bytes_per_second);
}

LeastTime& LeastTime::operator+=(const LeastTime& other) {
  seconds += other.seconds;
  compute_seconds += other.compute_seconds;
  memory_seconds += other.memory_seconds;
  flops += other.flops;
  bytes += other.bytes;
  operations += other.operations;
  launches += other.launches;
  return *this;
}

LeastTime least_time(std::span<const DeviceOperation> operations, const PeakRates& peak) {
  LeastTime sum;
  for (const DeviceOperation& operation : operations) {
    const double seconds = least_seconds(operation, peak);
    const bool computes = is_compute_bound(operation, peak);
    sum += {.seconds = seconds,
            .compute_seconds = computes ? seconds : 0,
            .memory_seconds = computes ? 0 : seconds,
            .flops = operation.flops,
            .bytes = operation.bytes,
            .operations = 1,
            .launches = operation.launches};
  }
  return sum;
}

std::vector<LikeOperations> largest(std::span<const DeviceOperation> operations, const PeakRates& peak,
                                    std::size_t most) {
  std::vector<LikeOperations> groups;
  for (const DeviceOperation& operation : operations) {
    auto found = std::ranges::find(groups, operation.name, &LikeOperations::name);
    if (found == groups.end()) {
      groups.push_back({.name = operation.name, .is_compute_bound = is_compute_bound(operation, peak)});
      found = groups.end() - 1;
    }
    ++found->count;
    found->seconds += least_seconds(operation, peak);
  }
  std::ranges::stable_sort(groups, std::greater(), &LikeOperations::seconds);
  groups.resize(std::min(groups.size(), most));
  return groups;
}

}  // namespace syncopate::prediction
