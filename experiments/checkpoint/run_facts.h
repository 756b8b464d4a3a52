// What a checkpoint's run and the run that is to go on from it must share, and what each process writes of a
// checkpoint. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/param_layout.h"
#include "experiments/checkpoint/manifest.h"
#include "experiments/checkpoint/part_writer.h"
#include "experiments/config/run_config.h"

namespace syncopate::experiments {

// By name, as options have them: all that decides what is learned, and not how it travels or where it runs. So the
// number of servers, the collective and the transport may differ. `config` has been through resolve().
std::map<std::string, std::string> facts_of(const RunConfig& config, const ParamLayout& layout,
                                            std::int64_t steps_per_epoch);

// Invalid argument, naming all that differs, unless `config` may go on from the checkpoint, and has steps left to do.
Status check_resume(const Manifest& manifest, const std::map<std::string, std::string>& facts,
                    std::int64_t total_steps);

// Whether each worker's strategy has something that nobody else has: what a codec has kept back, weights of its own.
bool has_state_of_its_own(const RunConfig& config);
// What a worker writes of each checkpoint; none: nothing, others have it. `has_local_state`: its model keeps something
// beside its weights.
std::optional<Share> share_of_worker(const RunConfig& config, bool has_local_state, bool is_chief);
// Whether all workers of a run cut at one step.
bool moves_together(const RunConfig& config);
// Whose parts make a checkpoint, of these workers and all shards.
std::vector<std::string> checkpoint_writers(const RunConfig& config, bool has_local_state,
                                            const std::vector<int>& workers);
std::string worker_writer(int rank);
std::string shard_writer(int shard);

}  // namespace syncopate::experiments
