#include "ps/ps_strategy.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cassert>

#include "ps/transport_memory.h"

namespace syncopate::ps {
namespace {

// Of dropped messages only the first few are logged; all are counted.
constexpr std::int64_t kLoggedDrops = 10;
// How long one receive of a wait without a deadline may take.
constexpr Duration kSlice = std::chrono::milliseconds(500);

}  // namespace

PsStrategy::PsStrategy(PsStrategyOptions options, Transport& transport, const Clock& clock, Activity* activity)
    : options_(options), transport_(transport), clock_(clock), activity_(activity) {
  assert(transport.size() == options_.group.size() && options_.group.is_worker(transport.rank()));
}

Result<ParamArenas> PsStrategy::allocate(const ParamLayout& layout) {
  Result<std::span<float>> weights = allocate_floats(transport_, layout.size());
  if (!weights.ok()) return weights.status();
  Result<std::span<float>> gradients = allocate_floats(transport_, layout.size());
  if (!gradients.ok()) return gradients.status();
  arenas_ = {*weights, *gradients};
  layout_hash_ = layout.hash();
  for (const Range& range : options_.group.ranges(layout.size())) links_.push_back({.range = range});
  for (int shard = shard_count(); shard-- > 0;) {
    if (link(shard).range.size() > 0) buckets_.push_back(shard);
  }
  return arenas_;
}

Result<std::vector<Range>> PsStrategy::join() {
  set_activity("join");
  const TimePoint deadline = timeout_from_now();
  const bool chief = transport_.rank() == kChief;
  wire::Join& join = *header_.mutable_join();
  join.set_layout_hash(layout_hash_);
  join.set_arena_size(arenas_.weights.size());
  for (int shard = 0; shard < shard_count(); ++shard) {
    const Range initial = chief ? link(shard).range : Range{};
    SYNCOPATE_RETURN_IF_ERROR(send(shard, slice(arenas_.weights, initial)).in("join"));
  }
  // The answers are written to where the initial weights are sent from.
  SYNCOPATE_RETURN_IF_ERROR(transport_.wait(pending_, deadline).in("join: the initial weights"));
  SYNCOPATE_RETURN_IF_ERROR(receive_answers(false, deadline).in("join"));

  std::vector<Range> buckets;
  for (const int shard : buckets_) buckets.push_back(link(shard).range);
  return buckets;
}

void PsStrategy::begin_step(const StepContext& step) {
  step_ = step;
  failure_ = Status();
  bytes_out_ = 0;
  bytes_in_ = 0;
  first_push_ = {};
}

void PsStrategy::gradient_ready(std::size_t bucket) {
  if (!failure_.ok()) return;
  if (bucket == 0) first_push_ = clock_.now();
  const int shard = buckets_[bucket];
  wire::Push& push = *header_.mutable_push();
  push.set_clock(++link(shard).clock);
  push.set_version(link(shard).version);
  push.set_learning_rate(step_.learning_rate);
  failure_ = send(shard, slice(arenas_.gradients, link(shard).range));
}

Result<SyncStats> PsStrategy::finish_step() {
  set_activity("wait for weights");
  const TimePoint wait_begin = clock_.now();
  const TimePoint deadline = wait_begin + options_.timeout;
  Status status = failure_;
  if (status.ok()) status = receive_answers(false, deadline);
  // The next backward writes to where the gradients were sent from.
  if (status.ok()) status = transport_.wait(pending_, deadline);
  if (!status.ok()) return status.in(fmt::format("step {}", step_.step));
  return stats(wait_begin);
}

Status PsStrategy::leave() {
  // It lasts as long as the slowest worker trains.
  if (activity_ != nullptr) activity_->rest("leave", step_.step);
  header_.mutable_leave();
  for (int shard = 0; shard < shard_count(); ++shard) SYNCOPATE_RETURN_IF_ERROR(send(shard, {}).in("leave"));
  return receive_answers(true, std::nullopt).in("leave");
}

void PsStrategy::set_activity(const char* operation) {
  if (activity_ != nullptr) activity_->set(operation, step_.step);
}

Status PsStrategy::send(int shard, std::span<const float> payload) {
  header_.SerializeToString(&header_bytes_);
  const std::span<const std::byte> bytes = std::as_bytes(payload);
  const Status status =
      transport_.send(options_.group.rank_of_shard(shard), header_bytes_, bytes, &pending_, timeout_from_now());
  if (!status.ok())
    return status.in(fmt::format("to shard {} (server {})", shard, options_.group.server_of_shard(shard)));
  link(shard).awaited = true;
  bytes_out_ += static_cast<std::int64_t>(bytes.size());
  return Status();
}

Status PsStrategy::receive_answers(bool final, std::optional<TimePoint> deadline) {
  while (any_awaited()) {
    const Result<Message> message = transport_.receive(deadline.value_or(clock_.now() + kSlice));
    if (message.ok()) {
      SYNCOPATE_RETURN_IF_ERROR(accept(*message, final));
      continue;
    }
    const Code code = message.status().code();
    if (code == Code::kDeadlineExceeded && deadline) {
      return Status(code, fmt::format("no answer from {} for {:.3g} s", silent_shards(), seconds(options_.timeout)));
    }
    // A peer that is gone may be a worker, which not every mode waits for; a shard that is gone stays silent.
    if (code == Code::kPeerLost) spdlog::debug("worker {}: {}", transport_.rank(), message.status().message());
    if (code != Code::kDeadlineExceeded && code != Code::kPeerLost) return message.status();
  }
  return Status();
}

Status PsStrategy::accept(const Message& message, bool final) {
  const int shard = options_.group.shard_of_rank(message.from());
  if (shard < 0 || !link(shard).awaited || !header_.ParseFromString(message.header()) ||
      !checks_out(message, shard, final)) {
    if (++dropped_ <= kLoggedDrops) {
      spdlog::warn("worker {}: dropped a message from {} that answers nothing", transport_.rank(), message.from());
    }
    return Status();
  }
  if (header_.has_reject()) return Status(Code::kInvalidArgument, header_.reject().reason());
  ShardLink& from = link(shard);
  const std::span<float> weights = slice(arenas_.weights, from.range);
  std::copy(message.payload().begin(), message.payload().end(), std::as_writable_bytes(weights).begin());
  from.version = header_.weights().version();
  from.staleness = header_.weights().staleness();
  from.awaited = false;
  bytes_in_ += static_cast<std::int64_t>(message.payload().size());
  last_answer_ = clock_.now();
  report_weights(from.range);
  return Status();
}

// Whether `message`, whose header is in header_, can be the awaited answer.
bool PsStrategy::checks_out(const Message& message, int shard, bool final) const {
  if (header_.has_reject()) return message.payload().empty();
  const ShardLink& from = links_[static_cast<std::size_t>(shard)];
  const wire::Weights& weights = header_.weights();
  return header_.has_weights() && weights.final() == final && weights.clock() == from.clock &&
         weights.staleness() >= 0 && weights.version() >= from.version &&
         message.payload().size() == from.range.size() * sizeof(float);
}

bool PsStrategy::any_awaited() const {
  return std::any_of(links_.begin(), links_.end(), [](const ShardLink& shard) { return shard.awaited; });
}

std::string PsStrategy::silent_shards() const {
  std::string names;
  for (int shard = 0; shard < shard_count(); ++shard) {
    if (!links_[static_cast<std::size_t>(shard)].awaited) continue;
    if (!names.empty()) names += ", ";
    names += fmt::format("shard {} (server {})", shard, options_.group.server_of_shard(shard));
  }
  return names;
}

SyncStats PsStrategy::stats(TimePoint wait_begin) const {
  SyncStats stats;
  stats.exposed_wait = clock_.now() - wait_begin;
  stats.communication = last_answer_ - first_push_;
  stats.bytes_out = bytes_out_;
  stats.bytes_in = bytes_in_;
  std::int64_t staleness_sum = 0;
  for (const int shard : buckets_) {
    const std::int64_t staleness = links_[static_cast<std::size_t>(shard)].staleness;
    staleness_sum += staleness;
    stats.staleness_max = std::max(stats.staleness_max, staleness);
  }
  stats.staleness_mean = static_cast<double>(staleness_sum) / static_cast<double>(buckets_.size());
  return stats;
}

}  // namespace syncopate::ps
