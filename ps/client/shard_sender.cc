#include "ps/client/shard_sender.h"

#include <fmt/format.h>

#include <utility>

namespace syncopate::ps {

ShardSender::ShardSender(const PsGroup& group, std::vector<int> heads, Transport& transport, const Clock& clock,
                         Duration timeout)
    : group_(group), heads_(std::move(heads)), transport_(transport), clock_(clock), timeout_(timeout) {
  while (heads_.size() < static_cast<std::size_t>(group_.shards())) {
    heads_.push_back(group_.rank_of_shard(static_cast<int>(heads_.size())));
  }
}

Status ShardSender::send(int shard, std::span<const std::byte> payload, PendingSends* pending) {
  header_.SerializeToString(&header_bytes_);
  const Status status =
      transport_.send(heads_[static_cast<std::size_t>(shard)], header_bytes_, payload, pending, timeout_from_now());
  if (status.ok()) return status;
  return status.in(
      fmt::format("to shard {} (server {})", group_.number_of_shard(shard), group_.server_of_shard(shard)));
}

}  // namespace syncopate::ps
