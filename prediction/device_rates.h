// How fast a device can be at most: the peak rates of its data sheet. published/device_rates.csv has those that are
// known, each with its source. Pure.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"

namespace syncopate::prediction {

// Precisions of products, in the order in which tables have them.
inline constexpr std::array<std::string_view, 4> kRatePrecisions = {"fp32", "tf32", "bf16", "fp16"};

// What it costs a host to give a GPU one kernel: of the runs on an H100 in results/reference/gpu/steps.txt the least,
// the mlp's 0.173 ms for the 25 calls that docs/gpus.md counts. It is the host's figure more than the GPU's.
inline constexpr double kLaunchSeconds = 6.9e-6;

struct DeviceRates {
  std::string name;      // "h100"
  std::string title;     // "H100 SXM 80 GB"
  std::string reported;  // a part of the name that its driver reports; empty: not known
  std::array<std::optional<double>, kRatePrecisions.size()> flops = {};  // a second, of products; none: it has no such
  double bytes_per_second = 0;                                           // of its memory
  double memory_bytes = 0;
  double launch_seconds = kLaunchSeconds;
  std::string source;  // where the figures are from

  // Returns the rate of products; none for an unknown precision, too.
  std::optional<double> flops_in(std::string_view precision) const;
  std::vector<std::string> precisions() const;  // that it has rates for
};

// The devices of the table.
const std::vector<DeviceRates>& known_devices();

// Returns the device of that name; null if there is none.
const DeviceRates* device_named(std::string_view name);

// Returns the device whose driver reports this name, as in "NVIDIA H100 80GB HBM3 (GPU 0, 79 GiB)"; null if it is none
// of the table.
const DeviceRates* device_reported_as(std::string_view reported);

// Fails with invalid argument, saying which there are, if the device has no rate in that precision.
Result<double> rate_of(const DeviceRates& device, std::string_view precision);

}  // namespace syncopate::prediction
