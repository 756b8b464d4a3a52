// The rate rule: which learning rate each row of a comparison trains with. Rows should differ in how they agree on
// weights, and not in how far one pass over the data moves the weights. Pure.
//
// Synchronous training applies rate x the mean gradient of W batches; asynchronous training applies rate x the gradient
// of one batch, W times as often, so that at equal rates it goes W times as far in a pass. An update whose minibatch is
// k times as large goes as far with k times the rate (Goyal et al. 2017, "Accurate, large minibatch SGD", section 2.1,
// the linear scaling rule). The rule per-sample applies that to all rows: rate x updates per pass is the same in each.
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"
#include "experiments/config/resolved_run.h"
#include "experiments/config/run_request.h"

namespace syncopate::experiments {

enum class RateRule {
  kPerSample,  // the rate belongs to the reference's update; other rates follow from the sizes of their minibatches
  kPerUpdate   // every row trains with the rate as it is given
};

const char* name_of(RateRule value);  // "per-sample", "per-update"
Result<RateRule> parse_rate_rule(const std::string& text);

// Returns the number of workers' batches that one update learns from, in a job that has lost no worker:
//
//   local                                 1 (in a comparison its one batch is that of all W workers)
//   allreduce, ps sync, W workers         W; with b backup workers under sync, W - b
//   bounded, async                        1
//   softsync:n                            max(1, floor(W / n))
//   local-sgd, easgd, sync-every, gossip  W: each of the W replicas makes one update from its own batch at a time, and
//                                         their mean or center, which is evaluated, goes as far as one of them
//   gossip-async                          W, too: an update moves one replica of W, and so moves their mean by 1/W of
//                                         that (Lian et al. 2018 analyse that mean). W updates of one batch each move
//                                         it as far as one update of a mean gradient, whichever workers make them
std::int64_t batches_an_update(const RunSettings& config, int workers);
std::int64_t batches_an_update(const ResolvedRun& config);

// Return batches_an_update x the batch size.
std::int64_t samples_an_update(const RunRequest& request);
std::int64_t samples_an_update(const ResolvedRun& config);

// Returns the number of updates in one pass over `training_samples`.
double updates_a_pass(const ResolvedRun& config, std::int64_t training_samples);

// Returns the rate that a row trains with whose updates are of `samples`, to nine digits. `rate` is right for updates
// of `reference_samples`.
double ruled_rate(RateRule rule, double rate, std::int64_t samples, std::int64_t reference_samples);

// Returns why the schedule's `linear` is not possible, or an empty text if it is. `linear` scales the rate by the ratio
// of one update's minibatch to one worker's batch (batches_an_update).
std::string why_not_linear(const ResolvedRun& config);

}  // namespace syncopate::experiments
