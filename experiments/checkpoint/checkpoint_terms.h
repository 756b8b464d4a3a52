// What the coordinator tells a process of checkpoints, beside where they are written.
#pragma once

#include <string>

#include "experiments/checkpoint/content_hash.h"

namespace syncopate::experiments {

struct CheckpointTerms {
  Digests digests = Digests::kNo;  // of the parts that it writes
  // The checkpoint that the run goes on from, and the digest of its manifest, which the coordinator has found to be
  // right: that one is to be read, whatever may lie in its place by now. Empty where the run begins anew.
  std::string resumed = {};
  std::string resumed_digest = {};

  // Of the manifest of the checkpoint in `folder`; empty: no particular one.
  std::string digest_of(const std::string& folder) const { return folder == resumed ? resumed_digest : std::string(); }
};

}  // namespace syncopate::experiments
