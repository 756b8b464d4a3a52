// ShardSender: sends a worker's messages to the shards. Each goes to the member that receives what workers send for its
// shard. One thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "common/transport/transport.h"
#include "ps/group.h"
#include "ps/wire.pb.h"

namespace syncopate::ps {

class ShardSender {
 public:
  // `heads` gives that member by shard; shards beyond its end use rank_of_shard. `timeout` applies to each send and
  // wait. `transport` and `clock` must outlive this object.
  ShardSender(const PsGroup& group, std::vector<int> heads, Transport& transport, const Clock& clock, Duration timeout);

  const PsGroup& group() const { return group_; }
  // The header of the next message. Set it before each send.
  wire::Header& header() { return header_; }
  // Sends header() and the payload. The payload must not change while `pending` counts it; `pending` may be null if the
  // payload is empty. Fails as Transport::send does, and names the shard.
  Status send(int shard, std::span<const std::byte> payload, PendingSends* pending);
  // Waits until what `pending` counts has been read.
  Status wait(const PendingSends& pending) { return transport_.wait(pending, timeout_from_now()); }

 private:
  TimePoint timeout_from_now() const { return clock_.now() + timeout_; }

  PsGroup group_;
  std::vector<int> heads_;
  Transport& transport_;
  const Clock& clock_;
  Duration timeout_;
  wire::Header header_;  // reused, as is the next
  std::string header_bytes_;
};

}  // namespace syncopate::ps
