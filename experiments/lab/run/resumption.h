// Resumption: the checkpoint from which a run goes on.
#pragma once

#include <optional>
#include <string>

#include "common/status.h"
#include "experiments/checkpoint/checkpoint_key.h"
#include "experiments/config/resolved_run.h"
#include "experiments/lab/report/summary_json.h"
#include "experiments/lab/run/console.h"
#include "experiments/lab/run/recorder.h"

namespace syncopate::experiments {

// What a run that writes checkpoints, or resumes from one, needs besides its options.
struct Resumption {
  std::optional<CheckpointKey> key = {};  // from --checkpoint-key-file
  std::string manifest_digest = {};       // of the checkpoint that it resumes from
};

// Finds the checkpoint to resume from, if any, sets in `job` and `facts` where the run goes on, and says which ones
// could not be used. Reads the key, which stays in this process. Fails as newest_checkpoint() and check_resume() do,
// and with invalid argument for a key that cannot be used.
Result<Resumption> find_resumed(const ResolvedRun& config, JobFacts& job, RunFacts& facts, Console& console);

}  // namespace syncopate::experiments
