// Introduction: what a worker says to the shards when it joins: who it is and, if it has to, what there is.
#pragma once

#include <span>

#include "common/status.h"
#include "common/transport/transport.h"
#include "ps/client/arena_links.h"
#include "ps/client/shard_sender.h"
#include "ps/client/table_client.h"

namespace syncopate::ps {

struct Introduction {
  const ArenaLinks& links;
  std::span<const float> weights;  // of the whole arena
  // Where tensors begin (common/tensor_begins.h), in the transport's memory; empty: the shards need not know.
  std::span<const std::uint64_t> tensor_begins;
  std::span<const Range> undecayed;  // of the arena (decay_parts.h)
  // It says which tables and chunks there are; else somebody else does.
  bool describes = false;
  // It also brings the initial weights; else the shards have theirs.
  bool brings_weights = false;
};

// To all shards. Weights and tensors' begins are sent from where they lie: they stay as they are while `pending` counts
// them. Fails as ShardSender::send does.
Status introduce(const Introduction& introduction, TableClient& tables, ShardSender& sender, PendingSends& pending);

}  // namespace syncopate::ps
