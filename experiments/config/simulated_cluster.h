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

// Returns what processes of one simulated host share with each other where --inside says nothing: 40 Gb/s, 5 us.
LinkShape usual_link_inside();

// How the hosts are connected: all to one switch, or in racks of equally many, each with a switch of its own, whose
// line to the others carries an `oversubscription`-th of what its hosts can send.
struct FabricChoice {
  int racks = 1;
  double oversubscription = 1;

  // "switch", "racks:4" or "racks:4,oversubscription:3".
  static Result<FabricChoice> parse(std::string_view text);
  static const char* forms() { return "switch, racks:R or racks:R,oversubscription:K"; }
  // In the form that parse() reads.
  std::string to_string() const;

  bool operator==(const FabricChoice&) const = default;
};

// How long a worker computes for a step in virtual time.
struct ComputeModel {
  // The time of forward and backward together.
  std::optional<Duration> step;
  // A device's FLOPs a second, of which forward and backward take three times those of the forward pass.
  std::optional<double> flops_per_second;
  // Neither ("solo"): what this machine takes for them with nothing else to do, measured once before the run.
  bool is_solo() const { return !step && !flops_per_second; }

  // "solo", "5ms", "250us", "1.5s", "900GFLOPS" or "15TFLOPS".
  static Result<ComputeModel> parse(std::string_view text);
  static const char* forms() {
    return "solo, the time of a step (250us, 5ms, 1.5s; up to 1000s) or a device's rate (900GFLOPS, 15TFLOPS)";
  }
  // In the form that parse() reads.
  std::string to_string() const;

  bool operator==(const ComputeModel&) const = default;
};

}  // namespace syncopate::experiments
