// Equality: the proof that comes before a comparison. Modes that compute the same updates (local with the batch of all
// workers, allreduce, and ps under sync) must come to the same weights within rounding; otherwise a comparison would
// compare more than the mode.
//
// How far two runs lie apart is measured tensor by tensor by how far training has moved that tensor,
//   |expected - actual| / |expected - initial|   (Euclidean),
// so that a fault in a part of an update (a weight decay, a worker or a shard left out) shows as that part, however
// little the weights move in all. Where a tensor has hardly moved, nothing can be said of it, and nothing is.
#pragma once

#include <span>
#include <string>

#include "common/param_layout.h"
#include "experiments/cluster/exit_code.h"
#include "experiments/config/run_config.h"
#include "experiments/lab/run/run_job.h"

namespace syncopate::experiments {

// The largest gap that is taken for rounding, which usually comes to 1e-6, and to 1e-4 where weights hardly move.
inline constexpr double kEqualityTolerance = 1e-3;
// The least movement, |expected - initial| / |initial|, that tells anything: of less than this, one unit in the last
// place of the weights (2^-24 of them) would be more than the tolerance. A tensor that begins with zeros must move.
inline constexpr double kLeastMovement = 0x1p-24 / kEqualityTolerance;

struct EqualityGap {
  enum class Verdict {
    kEqual,
    kUnequal,
    kNotShown,  // no tensor is unequal, and at least one has not moved enough to tell
  };
  Verdict verdict = Verdict::kEqual;
  std::string tensor;   // equal, unequal: the one with the largest gap; not shown: the one that moved least
  double gap = 0;       // of that tensor; infinite where it is not a number or the sizes differ
  double movement = 0;  // of that tensor, |expected - initial| / |initial|; infinite where it began with zeros
};

// Compares two sets of weights, both laid out as `layout` says, that training has made of `initial`. A tensor that has
// not moved enough is unequal, too, where the actual weights lie apart by more than the least movement.
EqualityGap equality_gap(const ParamLayout& layout, std::span<const float> initial, std::span<const float> expected,
                         std::span<const float> actual);

// The job that the check runs in place of `base`: a few steps at a rate at which every tensor moves by far more than
// rounding, whatever the rate of the job itself; without what changes no weight (stragglers, an emulated link) or
// changes it on purpose (backup workers, a codec, bf16). A weight decay is raised so far that one left out would show,
// and the epsilon of adam, adamw and adagrad, which otherwise divide a gradient that is nothing but rounding by its own
// size. Requires a config that validate() accepts.
RunConfig equality_job(const RunConfig& base);

struct EqualityOutcome {
  ExitCode exit = ExitCode::kSuccess;  // success also where equality could not be shown; the line says so
  bool is_shown = false;
  std::string line;  // for people: what was compared, the tolerance and what was found; or what failed
};

// Runs the synchronous modes of `base`, with their results below `folder`, and compares their weights. Where they are
// unequal it does so again with two other seeds: rounding can grow with one seed, a fault is there with each. A model
// with batch norm is compared without local, whose moments are of all workers' batches together.
EqualityOutcome check_equality(const RunConfig& base, const std::string& folder, const JobRunner& runner);

}  // namespace syncopate::experiments
