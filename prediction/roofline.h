// Roofline: the least time that a device can take for operations that run one after the other (Williams, Waterman and
// Patterson 2009, "Roofline: an insightful visual performance model"). Each takes at least as long as its products at
// the peak rate, and at least as long as its bytes at the memory's peak bandwidth. Pure.
//
// It is a bound, and no prediction: real kernels reach a part of both peaks, bytes that caches do not hold are read
// more than once, and small operations do not fill a device. On the other hand what an operation leaves in a cache may
// spare the next one reading it, which the bound counts.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace syncopate::prediction {

struct DeviceOperation {
  std::string name;
  double flops = 0;  // of products
  double bytes = 0;  // read and written, each once
  int launches = 1;
};

struct PeakRates {
  double flops_per_second = 0;
  double bytes_per_second = 0;
};

bool is_compute_bound(const DeviceOperation& operation, const PeakRates& peak);
double least_seconds(const DeviceOperation& operation, const PeakRates& peak);

// Several operations, one after the other.
struct LeastTime {
  double seconds = 0;          // the sum of the next two
  double compute_seconds = 0;  // of operations that products bound
  double memory_seconds = 0;   // of those that bytes bound
  double flops = 0;
  double bytes = 0;
  int operations = 0;
  int launches = 0;

  LeastTime& operator+=(const LeastTime& other);
};

LeastTime least_time(std::span<const DeviceOperation> operations, const PeakRates& peak);

// Operations of one name together.
struct LikeOperations {
  std::string name;
  int count = 0;
  double seconds = 0;
  bool is_compute_bound = false;
};

// Returns at most `most`, those with the largest sum of least times first; ties stay in the order of their first ones.
std::vector<LikeOperations> largest(std::span<const DeviceOperation> operations, const PeakRates& peak,
                                    std::size_t most);

}  // namespace syncopate::prediction
