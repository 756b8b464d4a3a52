// What a person may decide about a simulated cluster, besides what every run has.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/clock.h"
#include "common/status.h"
#include "common/transport/link_shape.h"

namespace syncopate::experiments {

// Where processes run: on the hosts that there are; on hosts that the run makes itself of network namespaces of this
// machine, with real packets; or as actors of a simulated world, in virtual time.
enum class ClusterKind { kReal, kNamespaces, kSimulated };

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
  // A profile with times, tensor by tensor: a file, or kOwnProfile, where the run's model is one. Empty: none.
  static constexpr std::string_view kOwnProfile = "profile";
  std::string profile;
  // A known device, whose step of a known model others have measured (prediction/device_steps.h): "a100", "a100:amp".
  std::string device = {};
  // None of them ("solo"): what this machine takes with nothing else to do, measured once before the run.
  bool is_solo() const { return !step && !flops_per_second && profile.empty() && device.empty(); }

  // "solo", "5ms", "250us", "1.5s", "900GFLOPS", "15TFLOPS", "v100", "a100:amp", "profile" or "mlp.json".
  static Result<ComputeModel> parse(std::string_view text);
  static std::string forms();
  // In the form that parse() reads.
  std::string to_string() const;

  bool operator==(const ComputeModel&) const = default;
};

// How long a process takes for what it does with bytes besides sending them, and computing gradients.
struct ProcessingModel {
  enum class Source {
    kNone,   // it takes no time
    kSolo,   // what this machine takes with nothing else to do, measured once before the run
    kGiven,  // the rates below
  };
  Source source = Source::kNone;
  // Bytes a second, of what is summed, updated, encoded and decoded; 0: it takes no time.
  double sum = 0;
  double update = 0;
  double encode = 0;
  double decode = 0;

  // "none", "solo" or "sum:11GB/s,update:4.2GB/s,encode:900MB/s,decode:2GB/s", of which some may be left out.
  static Result<ProcessingModel> parse(std::string_view text);
  static const char* forms() {
    return "none, solo or rates, as in sum:11GB/s,update:4GB/s,encode:900MB/s,decode:2GB/s (1MB/s to 1000000GB/s)";
  }
  // In the form that parse() reads.
  std::string to_string() const;

  bool operator==(const ProcessingModel&) const = default;
};

// Reads bytes a second, as in "900MB/s" or "4.2GB/s", of 1 MB/s to 10^6 GB/s; none if it is something else.
std::optional<double> parse_byte_rate(std::string_view text);
// In the form that parse_byte_rate() reads, with four digits that count.
std::string byte_rate_text(double bytes_per_second);

}  // namespace syncopate::experiments
