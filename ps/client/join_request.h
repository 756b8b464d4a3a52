// JoinRequest: what a worker tells the shards when it joins: its rank and, if it describes the job, the chunks and
// tables.
#pragma once

#include <span>

#include "common/status.h"
#include "common/training_state.h"
#include "common/transport/transport.h"
#include "ps/client/arena_links.h"
#include "ps/client/shard_sender.h"
#include "ps/client/table_client.h"

namespace syncopate::ps {

struct JoinRequest {
  const ArenaLinks& links;
  std::span<const float> weights;  // of the whole arena
  // Where tensors lie (common/tensor_ranges.h), in the transport's memory. Empty if the shards need not know.
  std::span<const Range> tensors;
  std::span<const Range> undecayed;  // of the arena (decay_parts.h)
  // This worker describes the tables and chunks; otherwise another worker does.
  bool describes = false;
  // This worker also sends the initial weights; otherwise the shards have theirs already.
  bool brings_weights = false;
  // What the optimizer remembers of these weights (state_part::kOptimizer), and after how many updates; empty if it
  // begins.
  const TrainingState& optimizer;
  Transport& transport;
};

// Sends the request to all shards. The weights and `tensors` are sent in place: they must not change while
// `pending` counts them. Fails as ShardSender::send does.
Status send_join_request(const JoinRequest& request, TableClient& tables, ShardSender& sender, PendingSends& pending);

}  // namespace syncopate::ps
