// The ways to run a job that advice chooses among. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "prediction/host_prices.h"
#include "prediction/step_prediction.h"

namespace syncopate::prediction {

enum class Goal { kFastest, kCheapest };

// What every candidate has in common, apart from the network.
struct AdvisedJob {
  ModelProfile profile;
  double compute = 0;  // seconds of a step of one worker alone, above 0
  HostPrices prices;   // used by kCheapest alone
  Goal goal = Goal::kFastest;
  int state_floats = 0;                // of the optimizer, for each parameter
  std::optional<double> memory_bytes;  // of a host with workers; none: no limit
};

// Modes whose synchronous ways are held against each other.
enum class Family { kAllreduce, kSharded, kServers, kPipelines, kParts };
inline constexpr Family kFamilies[] = {Family::kAllreduce, Family::kSharded, Family::kServers, Family::kPipelines,
                                       Family::kParts};
const char* name_of(Family family);  // "allreduce", "sharded", "servers", "pipelines" or "parts of layers"

// What is searched, each with each that it goes with. Lists must not be empty.
struct SearchSpace {
  std::vector<int> servers;  // of both kinds; on workers' hosts there is one on each, too
  std::vector<Sharding> shardings;
  std::vector<double> bucket_bytes;
  bool asynchronous = true;  // whether asynchronous workers are searched beside synchronous ones
  bool colocated = true;     // whether servers on workers' hosts are searched beside separate ones
  bool sharded = true;       // whether rings are searched whose workers have a share of the state each
  double buckets_ahead = 0;  // of these at stage 3: ExchangePlan::ahead_bytes, in buckets
};

// How layers are cut into stages, a worker each, which send each other activations; one stage has all layers.
struct StagePlan {
  int stages = 1;        // they divide the workers
  int microbatches = 1;  // of a step
  std::string schedule;  // as --pipeline-schedule takes it; empty for one stage
};

// A way to run: an exchange, with servers whether workers wait for each other, and how the model is divided.
struct Way {
  ExchangePlan plan;  // of a divided model: that of the workers of a stage or a part
  bool asynchronous = false;
  StagePlan pipeline = {};
  int parts = 1;  // of each layer, a worker each, which sum activations; they divide the workers

  Family family() const;
  // Ways of one kind differ in the number of servers, of stages, microbatches or parts, or in the size of buckets
  // alone.
  bool is_of_kind(const Way& other) const;
};

// Returns all ways of the space: ring, tree and halving-doubling with each bucket, and hierarchical ones where hosts
// have several workers; rings of each stage with each bucket; servers on hosts of their own and on those of workers,
// each synchronous and asynchronous, and with hosts of several workers aggregated. More servers on workers' hosts than
// there are hosts are left out.
std::vector<Way> ways_in(const SearchSpace& space, const Network& network);

// Fails as predict_step() does.
Result<StepPrediction> predict_way(const AdvisedJob& job, const Network& network, const Way& way);

// Returns what a step takes at the least, in seconds, whatever overlaps: computing, or the bytes over the busiest link
// that no allreduce (Patarasuk and Yuan, "Bandwidth Optimal All-reduce Algorithms for Clusters of Workstations", 2009)
// and no server can do without. Messages cost nothing. No exchange of this project is faster, so that a way whose least
// is more than another one takes cannot win.
double least_step(const AdvisedJob& job, const Network& network, const Way& way);

// Returns what the goal wants least of, for as many samples of a worker's batch: the seconds or the cost, in units that
// are the same for all networks and ways. `step` is in seconds.
double score(const AdvisedJob& job, const Network& network, const Way& way, double step);

}  // namespace syncopate::prediction
