// PsStrategy: the worker's side of the parameter servers.
//
// Its buckets are the shards' ranges: as soon as backward has finished a shard's range, the whole gradient of that
// shard goes out in one message, while backward goes on; the shard's answer carries the next weights. The compute
// thread owns the endpoint: a send hands over a pointer and never waits for the network.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/activity.h"
#include "common/clock.h"
#include "common/sync_strategy.h"
#include "common/transport/transport.h"
#include "ps/group.h"
#include "ps/wire.pb.h"

namespace syncopate::ps {

struct PsStrategyOptions {
  PsGroup group;
  Duration timeout = std::chrono::seconds(30);  // of join and of finish_step
};

class PsStrategy final : public SyncStrategy {
 public:
  // `transport` is the endpoint of a worker of the group; it, `clock` and `activity` (may be null) outlive this object.
  PsStrategy(PsStrategyOptions options, Transport& transport, const Clock& clock, Activity* activity);

  Result<ParamArenas> allocate(const ParamLayout& layout) override;

  // Fails with invalid argument, saying whose layout differs, if the workers' layouts are not the same, and with
  // deadline exceeded, saying which shards are silent, if not all workers and shards have joined in time.
  Result<std::vector<Range>> join() override;

  void begin_step(const StepContext& step) override;
  void gradient_ready(std::size_t bucket) override;

  // Fails with deadline exceeded, saying which shards are silent. When it returns, no gradient is read any more.
  Result<SyncStats> finish_step() override;

  // Waits until all workers that are still in the job have left: as long as the slowest of them trains. No deadline of
  // its own bounds that; a server that dies meanwhile is noticed by the control plane's heartbeats, which end this wait
  // through transport.interrupt().
  Status leave() override;

  // Messages that did not check out and were dropped.
  std::int64_t dropped() const { return dropped_; }

 private:
  struct ShardLink {
    Range range;
    std::int64_t clock = 0;      // pushes so far
    std::int64_t version = 0;    // of the weights in the arena
    std::int64_t staleness = 0;  // of the last push
    bool awaited = false;        // an answer is due
  };

  ShardLink& link(int shard) { return links_[static_cast<std::size_t>(shard)]; }
  int shard_count() const { return options_.group.shards(); }
  TimePoint timeout_from_now() const { return clock_.now() + options_.timeout; }
  void set_activity(const char* operation);

  // Sends `header_` and the payload to `shard`, whose answer is awaited from now on.
  Status send(int shard, std::span<const float> payload);
  // Receives until no answer is awaited. Without a deadline it ends with the transport's interrupt alone.
  Status receive_answers(bool final, std::optional<TimePoint> deadline);
  Status accept(const Message& message, bool final);
  bool checks_out(const Message& message, int shard, bool final) const;
  bool any_awaited() const;
  std::string silent_shards() const;
  SyncStats stats(TimePoint wait_begin) const;

  PsStrategyOptions options_;
  Transport& transport_;
  const Clock& clock_;
  Activity* activity_;

  std::uint64_t layout_hash_ = 0;
  ParamArenas arenas_;
  std::vector<ShardLink> links_;  // by shard
  std::vector<int> buckets_;      // bucket -> shard

  StepContext step_;
  Status failure_;  // the first of this step's pushes
  TimePoint first_push_{};
  TimePoint last_answer_{};
  std::int64_t bytes_out_ = 0;  // of this step
  std::int64_t bytes_in_ = 0;
  PendingSends pending_;
  wire::Header header_;  // reused, as is the next
  std::string header_bytes_;
  std::int64_t dropped_ = 0;
};

}  // namespace syncopate::ps
