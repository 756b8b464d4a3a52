#include "ps/server/push_account.h"

namespace syncopate::ps {

TraceSpan PushAccount::begin(int worker, const wire::Header& message, std::size_t payload_bytes) const {
  const bool is_traced = tracer_ != nullptr && message.has_push() && tracer_->traces_push(message.push().clock());
  return {tracer_,
          {.kind = TraceKind::kPushTaken,
           .shard = number_,
           .peer = worker,
           .item = static_cast<std::int32_t>(message.push().chunk()),
           .number = message.push().clock(),
           .bytes = static_cast<std::int64_t>(payload_bytes)},
          is_traced};
}

void PushAccount::accepted(const wire::Push& push, const Shard& shard, TraceSpan& span) {
  const ChunkWeights& weights = shard.chunk(push.chunk()).weights();
  pushes_.resize(shard.chunks());
  Pushes& its = pushes_[push.chunk()];
  ++its.waiting;
  if (weights.version() == its.version) return;
  const std::size_t bytes = weights.size() * sizeof(float);
  clock_.processed(Processing::kSum, static_cast<std::size_t>(its.waiting - 1) * bytes);
  clock_.processed(Processing::kUpdate, bytes);
  its = {.waiting = 0, .version = weights.version()};
  if (const TraceEvent* const taken = span.event()) {
    TraceEvent update = *taken;
    update.kind = TraceKind::kShardUpdate;
    update.value = weights.version();
    update.end = tracer_->now();
    tracer_->add(update);
  }
}

}  // namespace syncopate::ps
