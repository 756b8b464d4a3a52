// What the coordinator tells a process about checkpoints, besides where they are written.
#pragma once

#include <string>

#include "experiments/checkpoint/content_hash.h"

namespace syncopate::experiments {

struct CheckpointTerms {
  Digests digests = Digests::kNo;  // which digests it makes of the parts that it writes
  // The checkpoint that the run resumes from, and the digest of its manifest, which the coordinator has verified. The
  // process must read exactly this one, even if the files have been replaced since. Empty if the run begins anew.
  std::string resumed = {};
  std::string resumed_digest = {};

  // Returns the digest that the manifest of the checkpoint in `folder` must have; empty: any.
  std::string digest_of(const std::string& folder) const { return folder == resumed ? resumed_digest : std::string(); }
};

}  // namespace syncopate::experiments
