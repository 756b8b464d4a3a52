// What a person may decide about a simulated cluster, besides what every run has.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/status.h"
#include "common/transport/link_shape.h"

namespace syncopate::experiments {

// Where processes run: on the hosts that there are, or as actors of a simulated world, in virtual time.
enum class ClusterKind { kReal, kSimulated };

// The most workers that run, on real hosts and simulated.
inline constexpr int kMostWorkers = 64;
inline constexpr int kMostSimulatedWorkers = 1024;

// Returns each process's link where --shape gives none: 10 Gb/s each way, 50 us one way.
LinkShape usual_simulated_link();

// How long a worker computes for a step in virtual time.
struct ComputeModel {
  // The time of forward and backward together; none ("solo"): what this machine takes for them with nothing else to
  // do, measured once before the run.
  std::optional<Duration> step;

  // "solo", "5ms", "250us" or "1.5s".
  static Result<ComputeModel> parse(std::string_view text);
  static const char* forms() { return "solo, or the time of a step, from 1us to 1000s: 250us, 5ms, 1.5s"; }
  // In the form that parse() reads.
  std::string to_string() const;

  bool operator==(const ComputeModel&) const = default;
};

}  // namespace syncopate::experiments
