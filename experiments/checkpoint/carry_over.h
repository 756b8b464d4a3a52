// Carries a checkpoint over to a run that learns the same elsewhere: in another mode, with other workers or another
// batch. Weights, what the optimizer remembers, rows of tables, the position in the data and in the rate's schedule are
// carried; what belongs to one mode, or to one worker, is not, and is named before anything starts.
//
// A run goes on from the checkpoint that carry_over() writes as from one of its own. It begins with the step before
// which as many samples have been trained as the checkpoint's run has trained, epoch by epoch.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "experiments/checkpoint/checkpoint.h"
#include "experiments/checkpoint/checkpoint_key.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// A run that wants to go on from a checkpoint.
struct Successor {
  const ResolvedRun& config;
  const std::map<std::string, std::string>& facts;  // facts_of() it
  std::int64_t train_samples = 0;
};

struct CarryOver {
  std::int64_t step = 0;                 // with which the run goes on
  std::vector<std::string> differences;  // "--workers is 2 there and 3 here"
  std::vector<std::string> choices;      // those of them that both runs have
  std::vector<std::string> left_behind;  // what is not carried, a sentence each
};

// Returns what is carried over, without reading more than the manifest; none: nothing differs, and the run goes on from
// the checkpoint as it is. Fails with invalid argument, with the reason, if one of the two is of a kind that cannot be
// carried over, or, naming all differences, if what is learnt differs. Pure.
Result<std::optional<CarryOver>> plan_carry_over(const Manifest& manifest, const Successor& run);

// Writes what is carried over as a checkpoint in `folder` and returns that checkpoint's folder. Fails as
// Checkpoint::read() and write_part() do.
Result<std::string> carry_over(const Checkpoint& from, const StateForms& forms, const CarryOver& plan,
                               const Successor& run, const std::string& folder, const CheckpointKey* key);

}  // namespace syncopate::experiments
