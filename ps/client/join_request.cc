#include "ps/client/join_request.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "ps/transport_memory.h"

namespace syncopate::ps {
namespace {

Status claim(const JoinRequest& request, int shard, std::size_t tables, ShardSender& sender, PendingSends& pending) {
  const ShardLink& link = request.links.shards[static_cast<std::size_t>(shard)];
  wire::Join& join = *sender.header().mutable_join();
  join.set_layout_hash(request.links.hash);
  join.set_arena_size(request.weights.size());
  join.set_shard_size(request.links.size_of(link));
  join.set_chunks(link.buckets.size());
  join.set_tables(tables);
  return sender.send(shard, std::as_bytes(request.tensors), &pending);
}

// A header has room for ten bytes of each bound.
constexpr std::size_t kRangesAMessage = 8;

Status describe_decay(const JoinRequest& request, int shard, ShardSender& sender) {
  for (std::size_t begin = 0; begin < request.undecayed.size(); begin += kRangesAMessage) {
    const std::size_t count = std::min(kRangesAMessage, request.undecayed.size() - begin);
    wire::Undecayed& undecayed = *sender.header().mutable_undecayed();
    undecayed.Clear();  // the header is reused
    for (const Range& range : request.undecayed.subspan(begin, count)) {
      undecayed.add_bounds(range.begin);
      undecayed.add_bounds(range.end);
    }
    SYNCOPATE_RETURN_IF_ERROR(sender.send(shard, {}, nullptr));
  }
  return Status();
}

// Sends what the optimizer remembers of each chunk from memory for one of them.
class MemorySender {
 public:
  MemorySender(const JoinRequest& request, ShardSender& sender) : request_(request), sender_(sender) {}

  Status send(int shard, std::size_t number, Range range) {
    for (std::size_t memory = 0; memory < std::size(state_part::kOptimizer); ++memory) {
      if (!request_.optimizer.covers(state_part::kOptimizer[memory], range)) continue;
      SYNCOPATE_RETURN_IF_ERROR(sender_.wait(pending_));  // until the shard has taken the last one
      SYNCOPATE_RETURN_IF_ERROR(make_room(range.size()));
      const std::span<float> values = room_.first(range.size());
      SYNCOPATE_RETURN_IF_ERROR(request_.optimizer.read(state_part::kOptimizer[memory], range, values));
      wire::Memory& header = *sender_.header().mutable_memory();
      header.set_chunk(number);
      header.set_memory(memory);
      header.set_begin(range.begin);
      SYNCOPATE_RETURN_IF_ERROR(sender_.send(shard, std::as_bytes(values), &pending_));
    }
    return Status();
  }

 private:
  Status make_room(std::size_t floats) {
    if (room_.size() >= floats) return Status();
    SYNCOPATE_ASSIGN_OR_RETURN(room_, allocate_floats(request_.transport, floats));
    return Status();
  }

  const JoinRequest& request_;
  ShardSender& sender_;
  std::span<float> room_;
  PendingSends pending_;
};

Status describe_chunks(const JoinRequest& request, int shard, ShardSender& sender, PendingSends& pending) {
  const ShardLink& link = request.links.shards[static_cast<std::size_t>(shard)];
  MemorySender memories(request, sender);
  for (std::size_t number = 0; number < link.buckets.size(); ++number) {
    const Range range = request.links.chunks[link.buckets[number]].range;
    if (request.brings_weights) SYNCOPATE_RETURN_IF_ERROR(memories.send(shard, number, range));
    wire::Initial& initial = *sender.header().mutable_initial();
    initial.set_chunk(number);
    initial.set_begin(range.begin);
    initial.set_end(range.end);
    initial.set_updates(request.brings_weights ? request.optimizer.step : 0);
    const std::span<const std::byte> weights = std::as_bytes(slice(request.weights, range));
    SYNCOPATE_RETURN_IF_ERROR(
        sender.send(shard, request.brings_weights ? weights : std::span<const std::byte>(), &pending));
  }
  return Status();
}

}  // namespace

Status send_join_request(const JoinRequest& request, TableClient& tables, ShardSender& sender, PendingSends& pending) {
  for (int shard = 0; shard < sender.group().shards(); ++shard) {
    SYNCOPATE_RETURN_IF_ERROR(claim(request, shard, tables.tables(), sender, pending));
    if (!request.describes) continue;
    SYNCOPATE_RETURN_IF_ERROR(tables.describe_to(shard));
    SYNCOPATE_RETURN_IF_ERROR(describe_decay(request, shard, sender));
    SYNCOPATE_RETURN_IF_ERROR(describe_chunks(request, shard, sender, pending));
  }
  return Status();
}

}  // namespace syncopate::ps
