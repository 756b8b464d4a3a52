// Writes what one process has of a checkpoint: its TrainingState, as files of the checkpoint's folder.
//
// Values that have a layout go into one file a name, weights.safetensors and so on, which all processes share: each
// writes its own ranges at their places, so that no process must hold all, and the file is plain safetensors in the
// end, however many shards there were. Rows and values without a layout go into files of the process's own, as do
// values in padding, should there be any: compressed gradients may leave some.
#pragma once

#include <stop_token>
#include <string>

#include "common/training_state.h"
#include "experiments/checkpoint/arena_form.h"
#include "experiments/checkpoint/manifest.h"

namespace syncopate::experiments {

// Which of a state is written.
enum class Share {
  kAll,      // all, by the one process that has it, or writes it for all
  kOfOne,    // what this worker alone has, whose names end with ".worker3": others write the rest
  kReplica,  // all, as this worker's alone: replicas differ, and the chief's are those that others read
};

struct PartOptions {
  std::string folder;  // is there
  std::string writer;  // "worker-0"
  Share share = Share::kAll;
  int worker = -1;                 // of kReplica: its rank
  Digests digests = Digests::kNo;  // beside the checksums
};

// Has returned, once all is on the disk, what a manifest says of it. Resource exhausted where the disk is full or may
// not be written; cancelled once `stop` asks for it.
Result<StoredPart> write_part(const PartOptions& options, const StateForms& forms, const TrainingState& state,
                              const std::stop_token& stop = {});

// Bytes of files that write_part would fill.
std::uint64_t part_bytes(const PartOptions& options, const TrainingState& state);

}  // namespace syncopate::experiments
