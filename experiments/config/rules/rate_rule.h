// The rate rule: what learning rate the rows of a comparison train with, so that they differ in how they agree on
// weights and not in how far one pass of the data moves these. Pure.
//
// Synchronous training applies rate x the mean gradient of W batches, asynchronous training rate x the gradient of one,
// W times as often: at equal rates it goes W times as far in a pass. For updates whose minibatches are k times as
// large, k times the rate goes as far (Goyal et al. 2017, "Accurate, large minibatch SGD", section 2.1, the linear
// scaling rule). The rule per-sample applies that to all rows: rate x updates a pass is the same in each.
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"
#include "experiments/config/run_config.h"

namespace syncopate::experiments {

enum class RateRule {
  kPerSample,  // the rate is that of the reference's update, and others' follow from their minibatches
  kPerUpdate   // every row trains with the rate as it is given
};

const char* name_of(RateRule value);  // "per-sample", "per-update"
Result<RateRule> parse_rate_rule(const std::string& text);

// Workers' batches that one update learns from, in a job whose workers are all there:
//
//   local                                 1 (in a comparison its one batch is that of all W workers)
//   allreduce, ps sync, W workers         W; of sync with b backup workers W - b
//   bounded, async                        1
//   softsync:n                            max(1, floor(W / n))
//   local-sgd, easgd, sync-every, gossip  W: each of the W replicas makes an update of its own batch at a time, and
//                                         their mean or center, which is evaluated, goes as far as one of them
//   gossip-async                          W, too: an update moves one replica of W, and so their mean by 1/W of its way
//                                         (Lian et al. 2018 analyse that mean). Whoever makes them, W updates of one
//                                         batch each move it as far as one of a mean gradient
//
// `config` need not be resolved.
std::int64_t batches_an_update(const RunConfig& config);

// batches_an_update x the batch size. `config` has been through resolve().
std::int64_t samples_an_update(const RunConfig& config);

// Updates in one pass of `training_samples`, likewise. `config` has been through resolve().
double updates_a_pass(const RunConfig& config, std::int64_t training_samples);

// The rate that a row trains with, to nine digits: `rate` is right for updates of `reference_samples`. `config` is the
// row's, resolved.
double ruled_rate(RateRule rule, double rate, const RunConfig& config, std::int64_t reference_samples);

// Why the schedule's `linear`, which scales the rate by the growth of one update's minibatch over one worker's batch
// (batches_an_update), cannot be had; empty if it can. `config` need not be resolved.
std::string why_not_linear(const RunConfig& config);

}  // namespace syncopate::experiments
