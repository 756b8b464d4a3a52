// What a checkpoint's run and a run that resumes from it must have in common, and what each process writes of a
// checkpoint. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/param_layout.h"
#include "experiments/checkpoint/manifest.h"
#include "experiments/checkpoint/part_writer.h"
#include "experiments/config/resolved_run.h"

namespace syncopate::experiments {

// Returns the facts by name, as options have them: everything that decides what is learned, and not how it is sent or
// where it runs. So the number of servers, the collective and the transport
// may differ.
std::map<std::string, std::string> facts_of(const ResolvedRun& config, const ParamLayout& layout,
                                            std::int64_t steps_per_epoch);

// What the facts call the number of steps, where the rate's schedule goes by it.
inline constexpr const char* kLengthFact = "steps in all, which --lr-schedule goes by";
// The same of the stages whose workers push to servers each.
inline constexpr const char* kStagesFact = "--pipeline at servers";

// Fails with invalid argument unless a run of `total_steps` that goes on at `step` has steps left. What else must be
// the same, plan_carry_over() says (carry_over.h).
Status check_steps_left(std::int64_t step, std::int64_t total_steps);

// Returns whether each worker's strategy has state that no other process has: a codec's residual, or weights of its
// own.
bool has_state_of_its_own(const ResolvedRun& config);
// Returns what a worker writes of each checkpoint; none: nothing, since others have it. `has_local_state`: its model
// keeps something besides its weights. `is_chief`: the lowest of the workers, or of those that have its part of the
// model.
std::optional<Share> share_of_worker(const ResolvedRun& config, bool has_local_state, bool is_chief);
// Returns whether all workers of a run take a checkpoint at the same step.
bool moves_together(const ResolvedRun& config);
// Returns the writers whose parts make a checkpoint: those among these workers, and all shards.
std::vector<std::string> checkpoint_writers(const ResolvedRun& config, bool has_local_state,
                                            const std::vector<int>& workers);
std::string worker_writer(int rank);
std::string shard_writer(int shard);

// Returns the number of batches that the checkpoint's weights have learnt from, as its shards have counted them:
// gradients that every chunk has received. A gradient that was still being sent is not counted. It is not known which
// batches these were; a run that resumes assumes the first ones in the job's order. If no shard has counted, returns
// the steps of all workers.
std::int64_t batches_done(const Manifest& manifest, const ResolvedRun& config);

}  // namespace syncopate::experiments
