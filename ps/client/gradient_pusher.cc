#include "ps/client/gradient_pusher.h"

#include <algorithm>
#include <optional>

#include "ps/transport_memory.h"

namespace syncopate::ps {
namespace {

// The most chunks that may be unanswered on a link, however small they are: fewer than a wire's inbox holds messages.
constexpr std::size_t kMostUnanswered = 32;

}  // namespace

GradientPusher::GradientPusher(const Options& options, int worker, ArenaLinks& links, ShardSender& sender,
                               StepTraffic& traffic)
    : options_(options),
      worker_(worker),
      links_(links),
      sender_(sender),
      traffic_(traffic),
      pending_(slots()),
      scheduler_(options.order, static_cast<std::size_t>(sender.group().shards()), options.window_bytes) {}

Status GradientPusher::allocate(Transport& transport, const ParamArenas& arenas, WorkerCodec* codec) {
  codec_ = codec;
  gradients_ = arenas.gradients;
  outgoing_.resize(links_.chunks.size() * slots());
  sent_arenas_.assign(slots(), arenas.gradients);
  if (options_.pipeline_depth == 0 || codec != nullptr) return Status();
  for (std::span<float>& arena : sent_arenas_) {
    SYNCOPATE_ASSIGN_OR_RETURN(arena, allocate_floats(transport, arenas.gradients.size()));
  }
  return Status();
}

Status GradientPusher::ready(std::size_t bucket, const StepContext& step) {
  ChunkLink& chunk = links_.chunks[bucket];
  if (++chunk.ready - chunk.answered == options_.pipeline_depth + 1) ++behind_;
  const std::size_t slot = slot_of(step.step);
  outgoing_[bucket * slots() + slot] = {to_be_sent(bucket, slot), chunk.version, step.learning_rate};
  scheduler_.ready({.link = static_cast<std::size_t>(chunk.shard),
                    .bytes = credit_of(chunk),
                    .priority = static_cast<std::int64_t>(chunk.range.begin),
                    .index = bucket * slots() + slot});
  return push_what_may_go();
}

Status GradientPusher::push_what_may_go() {
  while (const std::optional<PushScheduler::Chunk> next = scheduler_.next()) {
    SYNCOPATE_RETURN_IF_ERROR(push(next->index / slots(), next->index % slots()));
  }
  return Status();
}

void GradientPusher::answered(ChunkLink& chunk) {
  scheduler_.done(static_cast<std::size_t>(chunk.shard), credit_of(chunk));
  if (chunk.ready - chunk.answered == options_.pipeline_depth + 1) --behind_;
  ++chunk.answered;
}

std::span<const std::byte> GradientPusher::to_be_sent(std::size_t bucket, std::size_t slot) {
  const ChunkLink& chunk = links_.chunks[bucket];
  const std::span<const float> gradient = slice(gradients_, chunk.range);
  if (codec_ != nullptr) return codec_->encode(push_name(worker_, chunk, chunk.ready), bucket, slot, gradient);
  const std::span<float> sent = slice(sent_arenas_[slot], chunk.range);
  if (options_.pipeline_depth > 0) std::copy(gradient.begin(), gradient.end(), sent.begin());
  return std::as_bytes(sent);
}

Status GradientPusher::push(std::size_t bucket, std::size_t slot) {
  ChunkLink& chunk = links_.chunks[bucket];
  const Outgoing& what = outgoing_[bucket * slots() + slot];
  wire::Push& push = *sender_.header().mutable_push();
  push.set_chunk(chunk.number);
  push.set_clock(++chunk.pushed);
  push.set_version(what.version);
  push.set_learning_rate(what.learning_rate);
  if (own_rate_) push.set_own_rate(*own_rate_);
  const TraceSpan span(options_.tracer,
                       {.kind = TraceKind::kPush,
                        .shard = sender_.group().number_of_shard(chunk.shard),
                        .peer = worker_,
                        .item = static_cast<std::int32_t>(chunk.number),
                        .number = chunk.pushed,
                        .value = what.version,
                        .bytes = static_cast<std::int64_t>(what.gradient.size())},
                       options_.tracer != nullptr && options_.tracer->traces_push(chunk.pushed));
  traffic_.expect(1);
  SYNCOPATE_RETURN_IF_ERROR(sender_.send(chunk.shard, what.gradient, &pending_[slot]));
  traffic_.sent(what.gradient.size());
  return Status();
}

std::size_t GradientPusher::credit_of(const ChunkLink& chunk) const {
  return std::max(chunk.range.size() * sizeof(float), options_.window_bytes / kMostUnanswered);
}

}  // namespace syncopate::ps
