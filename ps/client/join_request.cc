#include "ps/client/join_request.h"

#include <algorithm>
#include <cstddef>

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
  return sender.send(shard, std::as_bytes(request.tensor_begins), &pending);
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

Status describe_chunks(const JoinRequest& request, int shard, ShardSender& sender, PendingSends& pending) {
  const ShardLink& link = request.links.shards[static_cast<std::size_t>(shard)];
  for (std::size_t number = 0; number < link.buckets.size(); ++number) {
    const Range range = request.links.chunks[link.buckets[number]].range;
    wire::Initial& initial = *sender.header().mutable_initial();
    initial.set_chunk(number);
    initial.set_begin(range.begin);
    initial.set_end(range.end);
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
