// Equality: the proof that precedes a comparison. Modes that compute the same updates (local with the batch of all
// workers, allreduce, and ps under sync) must reach the same weights within rounding; otherwise a comparison would
// measure more than the mode.
//
// The distance between two runs is measured tensor by tensor, relative to how far training has moved the tensor,
//   |expected - actual| / |expected - initial|   (Euclidean),
// so that a fault in one part of an update (a weight decay, a worker or a shard left out) shows in that tensor, however
// little the weights move in total. A tensor that has hardly moved shows nothing, and is not judged.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/param_layout.h"
#include "experiments/cluster/exit_code.h"
#include "experiments/config/run_request.h"
#include "experiments/lab/run/run_job.h"

namespace syncopate::experiments {

// The largest gap that counts as rounding. Rounding is usually 1e-6, and up to 1e-4 where weights hardly move.
inline constexpr double kEqualityTolerance = 1e-3;
// The least movement, |expected - initial| / |initial|, that shows anything. With less, one unit in the last place of
// the weights (2^-24 of them) would exceed the tolerance. A tensor that begins with zeros must move.
inline constexpr double kLeastMovement = 0x1p-24 / kEqualityTolerance;

struct EqualityGap {
  enum class Verdict {
    kEqual,
    kUnequal,
    kNotShown,  // no tensor is unequal, and at least one has not moved far enough to tell
  };
  Verdict verdict = Verdict::kEqual;
  std::string tensor;   // equal, unequal: the tensor with the largest gap; not shown: the one that moved least
  double gap = 0;       // gap of that tensor; infinite if it is not a number or the sizes differ
  double movement = 0;  // movement of that tensor, |expected - initial| / |initial|; infinite if it began with zeros
};

// Compares two sets of weights that training has made from `initial`, all laid out as `layout` says. A tensor that has
// not moved enough is also unequal if the actual weights differ by more than the least movement.
EqualityGap equality_gap(const ParamLayout& layout, std::span<const float> initial, std::span<const float> expected,
                         std::span<const float> actual);

// Returns the job that the check runs in place of `base`: a few steps at a rate at which every tensor moves by far more
// than rounding, whatever the job's own rate is. It drops settings that change no weight (stragglers, an emulated link)
// or change it on purpose (backup workers, a codec, bf16). It raises a weight decay so far that leaving it out would
// show. It also raises the epsilon of adam and its kin, which otherwise divide a gradient that is only rounding
// by its own size. Requires a request that
// check() accepts.
RunRequest equality_job(const RunRequest& base);
// Whether its workers are several, without whom nothing is summed.
bool sums_something(RunRequest job);

struct EqualityOutcome {
  ExitCode exit = ExitCode::kSuccess;  // success also where equality could not be shown; `line` then says so
  bool is_shown = false;
  std::string line;  // for people: what was compared, the tolerance and the result; or what failed
};

// Runs the synchronous modes of `base`, each as `resolver` resolves it, with their results below `folder`, and compares
// their weights. If they are unequal it repeats this with two other seeds: rounding can grow with one seed, but a fault
// shows with each. A model with batch norm is compared without local, whose moments are those of all workers' batches
// together; so is a run whose workers have parts by label, which local does not have.
// Modes with a sharded state, or with both servers and sums, and these `ways` of modes, as in allreduce:tensor:2, are
// among them if a row of the comparison has them; but not those that cut batches of a model with batch norm, whose
// moments are a microbatch's.
EqualityOutcome check_equality(const RunRequest& base, const std::vector<Mode>& modes_of_rows,
                               const std::set<std::string>& ways, const std::string& folder, const Resolver& resolver,
                               const JobRunner& runner);

}  // namespace syncopate::experiments
