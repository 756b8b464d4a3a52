// Writes one process's part of a checkpoint: its TrainingState, as files in the checkpoint's folder.
//
// Values that have a layout go into one file per name (weights.safetensors and so on), which all processes share: each
// writes its own ranges at their offsets, so that no process must hold all of them, and the result is plain safetensors
// for any number of shards. Rows and values without a layout go into files of the process's own, as do values in
// padding, which compressed gradients may leave there.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "common/training_state.h"
#include "experiments/checkpoint/arena_form.h"
#include "experiments/checkpoint/checkpoint_policy.h"
#include "experiments/checkpoint/manifest.h"

namespace syncopate::experiments {

// Which part of a state is written.
enum class Share {
  kAll,      // everything, by the one process that has it, or writes it for all
  kOwnOnly,  // only what this worker alone has, whose names end with ".worker3"; others write the rest
  kReplica,  // everything, under this worker's own names: replicas differ, and readers use the chief's
};

struct PartOptions {
  std::string folder;  // must exist
  std::string writer;  // "worker-0"
  Share share = Share::kAll;
  int worker = -1;                 // kReplica only: its rank
  Digests digests = Digests::kNo;  // whether digests are made besides the checksums
};

// Writes the part and returns its description for the manifest once all of it is on the disk. Fails with resource
// exhausted if the disk is full or may not be written, and with cancelled once `stop` is requested.
Result<StoredPart> write_part(const PartOptions& options, const StateForms& forms, const TrainingState& state,
                              const std::stop_token& stop = {});

// Returns the size in bytes of the files that write_part would write.
std::uint64_t part_bytes(const PartOptions& options, const TrainingState& state);

using ReportCheckpoint = std::function<void(const CheckpointReport& report)>;

// `options.folder` is the run's folder of checkpoints, in which the attempt has a folder of its own. `report` says
// which checkpoint it is; `tell` receives it once the part is on the disk or has failed. `tell` is not called if `stop`
// is requested, since the run is then over.
void deliver_part(PartOptions options, const StateForms& forms, const TrainingState& state, const std::stop_token& stop,
                  CheckpointReport report, const ReportCheckpoint& tell);

// Reports that a part could not be taken or written.
void tell_failure(CheckpointReport report, const Status& status, const ReportCheckpoint& tell);

}  // namespace syncopate::experiments
