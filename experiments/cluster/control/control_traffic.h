// How many bytes the coordinator's control connections with other hosts carry, by what they are for. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/clock.h"
#include "experiments/cluster/control/control.pb.h"

namespace syncopate::experiments {

enum class ControlMatter { kStepRecords, kBatches, kTraces, kAllElse };
inline constexpr std::size_t kControlMatters = 4;

ControlMatter matter_of(const control::ToCoordinator& message);
ControlMatter matter_of(const control::FromCoordinator& message);

// Bytes on the wire, each way. Weights are not counted: they go when --evaluate-every says so.
struct ControlTraffic {
  std::array<std::int64_t, kControlMatters> in = {}, out = {};  // by matter

  // A message's own bytes; what Ethernet and TCP add is added here.
  void add_in(ControlMatter matter, std::size_t bytes);
  void add_out(ControlMatter matter, std::size_t bytes);
  ControlTraffic since(const ControlTraffic& before) const;
};

// More than this a second, each way, is much: 1 % of a link of 1 Gb/s.
inline constexpr double kMuchControlTraffic = 1.25e6;

// Returns a line for a person if `traffic`, of `duration`, is much in one direction, with the figure and what would
// lower it: "the coordinator takes 2.1 MB/s from processes on other hosts, ..."; empty if it is not.
std::string notice_of(const ControlTraffic& traffic, Duration duration);

// Notices once that the mean traffic since training began is much.
class TrafficWatch {
 public:
  // Training has begun; later calls have no effect.
  void begin(const ControlTraffic& before, TimePoint now);
  // Returns the notice, once; empty otherwise, and for the first two seconds of training, whose mean says little.
  std::string take_notice(const ControlTraffic& traffic, TimePoint now);

 private:
  ControlTraffic before_;
  std::optional<TimePoint> begun_;
  bool has_noticed_ = false;
};

}  // namespace syncopate::experiments
