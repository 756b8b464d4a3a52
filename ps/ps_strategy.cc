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
// The most chunks that may be unanswered on a link, however small they are: fewer than a wire's inbox holds messages.
constexpr std::size_t kMostUnanswered = 32;

PsStrategyOptions with_heads(PsStrategyOptions options) {
  for (int shard = 0;
       shard < options.group.shards() && options.heads.size() < static_cast<std::size_t>(options.group.shards());
       ++shard) {
    options.heads.push_back(options.group.rank_of_shard(shard));
  }
  return options;
}

}  // namespace

PsStrategy::PsStrategy(PsStrategyOptions options, Transport& transport, const Clock& clock, Activity* activity)
    : options_(with_heads(std::move(options))),
      transport_(transport),
      clock_(clock),
      activity_(activity),
      pending_(slots()),
      scheduler_(options_.push_order, static_cast<std::size_t>(options_.group.shards()), options_.window_bytes),
      tables_(options_.group, options_.heads, transport, clock, options_.timeout) {
  assert(transport.size() == options_.group.size() && options_.group.is_worker(transport.rank()));
  if (options_.compression.of_pushes()) codec_.emplace(options_.compression, clock_);
}

PsStrategy::~PsStrategy() {
  if (phase_ != Phase::kLeft || tables_.tables() == 0) return;
  if (const Status status = tables_.say_goodbye(); !status.ok()) spdlog::warn("goodbye: {}", status.message());
}

Result<ParamArenas> PsStrategy::allocate(const ParamLayout& layout) {
  if (!layout.tables().empty() && (options_.pipeline_depth > 0 || options_.push_order != PushScheduler::Order::kFifo)) {
    return Status(Code::kInvalidArgument,
                  "row-sparse tables are pulled step by step: without a pipeline, and in the order of backward");
  }
  const auto allocate_arena = [&](std::span<float>& arena) {
    Result<std::span<float>> memory = allocate_floats(transport_, layout.size());
    if (memory.ok()) arena = *memory;
    return memory.status();
  };
  SYNCOPATE_RETURN_IF_ERROR(allocate_arena(arenas_.weights));
  SYNCOPATE_RETURN_IF_ERROR(allocate_arena(arenas_.gradients));
  sent_arenas_.assign(slots(), arenas_.gradients);
  if (options_.pipeline_depth > 0 && !codec_) {
    for (std::span<float>& arena : sent_arenas_) SYNCOPATE_RETURN_IF_ERROR(allocate_arena(arena));
  }
  links_ = arena_links(layout, static_cast<std::size_t>(options_.group.shards()), options_.sharding);
  outgoing_pushes_.resize(links_.chunks.size() * slots());
  if (codec_) {
    SYNCOPATE_RETURN_IF_ERROR(
        codec_->allocate(transport_, links_.ranges(), layout.size(), slots(), options_.undoes_pushes));
  }
  SYNCOPATE_RETURN_IF_ERROR(tables_.allocate(layout, arenas_));
  return arenas_;
}

Status PsStrategy::restore(const TrainingState& state) {
  return codec_ ? codec_->restore(transport_.rank(), state) : Status();
}

Status PsStrategy::save(TrainingState& state) const {
  state.step = round_;
  if (codec_) codec_->save(transport_.rank(), state);
  return Status();
}

Result<std::vector<Range>> PsStrategy::join() {
  set_activity("join");
  const TimePoint deadline = timeout_from_now();
  for (int shard = 0; shard < options_.group.shards(); ++shard) {
    SYNCOPATE_RETURN_IF_ERROR(introduce_to(shard).in("join"));
  }
  // The answers are written to where the initial weights are sent from.
  SYNCOPATE_RETURN_IF_ERROR(transport_.wait(pending_[0], deadline).in("join: the initial weights"));
  SYNCOPATE_RETURN_IF_ERROR(receive_all_weights(deadline).in("join"));
  take_up();
  phase_ = Phase::kTraining;
  communication_ = {};
  traffic_ = {};
  std::vector<Range> buckets = links_.ranges();
  for (std::size_t table = tables_.tables(); table-- > 0;) buckets.push_back(tables_.room_of(table));
  return buckets;
}

Status PsStrategy::introduce_to(int shard) {
  const ShardLink& link = links_.shards[static_cast<std::size_t>(shard)];
  wire::Join& join = *outgoing_.mutable_join();
  join.set_layout_hash(links_.hash);
  join.set_arena_size(arenas_.weights.size());
  join.set_shard_size(links_.size_of(link));
  join.set_chunks(link.buckets.size());
  join.set_tables(tables_.tables());
  SYNCOPATE_RETURN_IF_ERROR(send(shard, {}, pending_[0]));
  return options_.goes_on || transport_.rank() == options_.chief ? describe_to(shard) : Status();
}

Status PsStrategy::describe_to(int shard) {
  SYNCOPATE_RETURN_IF_ERROR(tables_.describe_to(shard));
  const ShardLink& link = links_.shards[static_cast<std::size_t>(shard)];
  for (std::size_t number = 0; number < link.buckets.size(); ++number) {
    const Range range = links_.chunks[link.buckets[number]].range;
    wire::Initial& initial = *outgoing_.mutable_initial();
    initial.set_chunk(number);
    initial.set_begin(range.begin);
    initial.set_end(range.end);
    const std::span<const float> weights = slice(arenas_.weights, range);
    SYNCOPATE_RETURN_IF_ERROR(
        send(shard, options_.goes_on ? std::span<const std::byte>() : std::as_bytes(weights), pending_[0]));
  }
  return Status();
}

void PsStrategy::take_up() {
  round_ = tables_.tables() > 0 ? tables_.least_pushed() : links_.least_answered();
  if (tables_.tables() > 0 && !links_.chunks.empty()) round_ = std::min(round_, links_.least_answered());
  first_round_ = round_;
  tables_.take_up(round_);
  for (std::size_t bucket = 0; bucket < links_.chunks.size(); ++bucket) {
    ChunkLink& chunk = links_.chunks[bucket];
    chunk.ready = chunk.pushed = chunk.answered;
    if (codec_) codec_->take_up(bucket, chunk.answered);
  }
}

void PsStrategy::begin_step(const StepContext& step) {
  step_ = step;
  failure_ = Status();
  forward_wait_ = {};
  if (tables_.tables() == 0) return;
  expect(tables_.tables() * links_.shards.size());
  failure_ = tables_.begin_step(step);
}

void PsStrategy::gradient_ready(std::size_t bucket) {
  if (!failure_.ok()) return;
  in_backward_ = true;
  if (bucket >= links_.chunks.size()) {
    failure_ = tables_.push(table_of(bucket), step_.learning_rate);
    return;
  }
  ChunkLink& chunk = links_.chunks[bucket];
  if (chunk.ready > round_) return;  // pushed before the shard was lost, and applied
  if (++chunk.ready - chunk.answered == options_.pipeline_depth + 1) ++behind_;
  const std::size_t slot = slot_of(step_.step);
  outgoing_pushes_[bucket * slots() + slot] = {to_be_sent(bucket, slot), chunk.version, step_.learning_rate};
  scheduler_.ready({.link = static_cast<std::size_t>(chunk.shard),
                    .bytes = credit_of(chunk),
                    .priority = static_cast<std::int64_t>(chunk.range.begin),
                    .index = bucket * slots() + slot});
  failure_ = push_ready_chunks();
  // A worker that runs ahead still computes with the weights that an answer would replace.
  if (failure_.ok() && !scheduler_.empty() && options_.pipeline_depth == 0) failure_ = take_answers();
}

std::span<const std::byte> PsStrategy::to_be_sent(std::size_t bucket, std::size_t slot) {
  const ChunkLink& chunk = links_.chunks[bucket];
  const std::span<const float> gradient = slice(arenas_.gradients, chunk.range);
  if (codec_) return codec_->encode(push_name(chunk, chunk.ready), bucket, slot, gradient);
  const std::span<float> sent = slice(sent_arenas_[slot], chunk.range);
  if (options_.pipeline_depth > 0) std::copy(gradient.begin(), gradient.end(), sent.begin());
  return std::as_bytes(sent);
}

PushName PsStrategy::push_name(const ChunkLink& chunk, std::int64_t clock) const {
  return {.worker = transport_.rank(), .shard = chunk.shard, .chunk = chunk.number, .clock = clock};
}

Result<SyncStats> PsStrategy::finish_step() {
  set_activity("wait for weights");
  in_backward_ = false;
  const TimePoint wait_begin = clock_.now();
  const TimePoint deadline = wait_begin + options_.timeout;
  for (const Range& range : unreported_) report_weights(range);
  unreported_.clear();
  Status status = failure_;
  if (status.ok() && options_.overlap_forward) status = take_answers();
  if (status.ok() && !options_.overlap_forward) status = exchange_until([&] { return behind_ == 0; }, deadline);
  // The next step writes to where these gradients were sent from.
  if (status.ok() && behind_ == 0) status = transport_.wait(pending_[slot_of(step_.step + 1)], deadline);
  if (!status.ok()) return status.in(fmt::format("step {}", step_.step));
  ++round_;
  return take_stats(wait_begin);
}

Status PsStrategy::weights_needed(Range range) {
  if (!failure_.ok()) return failure_.in(fmt::format("step {}", step_.step));
  if (behind_ == 0 && !tables_.awaits(range)) return Status();
  set_activity("wait for weights");
  const TimePoint wait_begin = clock_.now();
  const auto are_here = [&] {
    return !tables_.awaits(range) && std::ranges::none_of(links_.chunks, [&](const ChunkLink& chunk) {
      return chunk.range.begin < range.end && range.begin < chunk.range.end && chunk.ready > chunk.answered;
    });
  };
  Status status = exchange_until(are_here, wait_begin + options_.timeout);
  // Backward, which comes next, writes to where the gradients were sent from.
  if (status.ok() && behind_ == 0) status = transport_.wait(pending_[0], wait_begin + options_.timeout);
  forward_wait_ += clock_.now() - wait_begin;
  return status.in(fmt::format("step {}", step_.step));
}

Status PsStrategy::leave() {
  set_activity("wait for the last answers");
  const auto nothing_due = [&] { return scheduler_.idle(); };
  SYNCOPATE_RETURN_IF_ERROR(exchange_until(nothing_due, timeout_from_now()).in("leave"));
  // What follows lasts as long as the slowest worker trains.
  if (activity_ != nullptr) activity_->rest("leave", step_.step);
  phase_ = Phase::kLeaving;
  for (int shard = 0; shard < options_.group.shards(); ++shard) {
    outgoing_.mutable_leave();
    SYNCOPATE_RETURN_IF_ERROR(send(shard, {}, pending_[0]).in("leave"));
  }
  SYNCOPATE_RETURN_IF_ERROR(receive_all_weights(std::nullopt).in("leave"));
  phase_ = Phase::kLeft;
  return Status();
}

Status PsStrategy::read_rows(std::size_t table, RowKeys keys, std::span<float> values) {
  SYNCOPATE_RETURN_IF_ERROR(check_reads(table));
  set_activity("read rows");
  while (!keys.empty()) {
    const std::size_t count = std::min(keys.size(), tables_.rows_a_step(table));
    const std::size_t floats = count * tables_.width(table);
    SYNCOPATE_RETURN_IF_ERROR(tables_.ask_rows(table, keys.first(count), values.first(floats)).in("read rows"));
    SYNCOPATE_RETURN_IF_ERROR(finish_reading());
    keys = keys.subspan(count);
    values = values.subspan(floats);
  }
  return Status();
}

Result<std::vector<RowKey>> PsStrategy::touched_rows(std::size_t table) {
  SYNCOPATE_RETURN_IF_ERROR(check_reads(table));
  set_activity("list rows");
  SYNCOPATE_RETURN_IF_ERROR(tables_.ask_keys(table).in("list rows"));
  SYNCOPATE_RETURN_IF_ERROR(finish_reading());
  return tables_.listed();
}

Status PsStrategy::check_reads(std::size_t table) const {
  const bool is_in_job = phase_ == Phase::kTraining || phase_ == Phase::kLeft;
  if (is_in_job && table < tables_.tables()) return Status();
  return Status(Code::kInvalidArgument,
                fmt::format("rows of table {} of {}, which can be read after join", table, tables_.tables()));
}

Status PsStrategy::finish_reading() {
  return exchange_until([&] { return !tables_.reads_due(); }, timeout_from_now()).in("read rows");
}

void PsStrategy::expect(std::size_t messages) {
  if (unanswered_ == 0) under_way_since_ = clock_.now();
  unanswered_ += static_cast<std::int64_t>(messages);
}

void PsStrategy::set_activity(const char* operation) {
  if (activity_ != nullptr) activity_->set(operation, step_.step);
}

Status PsStrategy::send(int shard, std::span<const std::byte> payload, PendingSends& pending) {
  outgoing_.SerializeToString(&outgoing_bytes_);
  const Status status = transport_.send(options_.heads[static_cast<std::size_t>(shard)], outgoing_bytes_, payload,
                                        &pending, timeout_from_now());
  if (!status.ok())
    return status.in(fmt::format("to shard {} (server {})", shard, options_.group.server_of_shard(shard)));
  traffic_.bytes_out += static_cast<std::int64_t>(payload.size());
  return Status();
}

Status PsStrategy::push_ready_chunks() {
  while (const std::optional<PushScheduler::Chunk> next = scheduler_.next()) {
    SYNCOPATE_RETURN_IF_ERROR(push(next->index / slots(), next->index % slots()));
  }
  return Status();
}

Status PsStrategy::push(std::size_t bucket, std::size_t slot) {
  ChunkLink& chunk = links_.chunks[bucket];
  const Outgoing& what = outgoing_pushes_[bucket * slots() + slot];
  wire::Push& push = *outgoing_.mutable_push();
  push.set_chunk(chunk.number);
  push.set_clock(++chunk.pushed);
  push.set_version(what.version);
  push.set_learning_rate(what.learning_rate);
  expect(1);
  return send(chunk.shard, what.gradient, pending_[slot]);
}

Status PsStrategy::take_answers() {
  while (unanswered_ > 0) {
    const Result<Message> message = transport_.receive(TimePoint{});
    if (message.status().code() == Code::kDeadlineExceeded) break;
    if (message.status().code() == Code::kPeerLost) continue;
    if (!message.ok()) return message.status();
    SYNCOPATE_RETURN_IF_ERROR(accept(*message));
  }
  return push_ready_chunks();
}

template <typename Complete>
Status PsStrategy::exchange_until(Complete&& complete, std::optional<TimePoint> deadline) {
  while (true) {
    SYNCOPATE_RETURN_IF_ERROR(push_ready_chunks());
    if (complete()) return Status();
    const Result<Message> message = transport_.receive(deadline.value_or(clock_.now() + kSlice));
    if (message.ok()) {
      SYNCOPATE_RETURN_IF_ERROR(accept(*message));
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
}

Status PsStrategy::receive_all_weights(std::optional<TimePoint> deadline) {
  for (ShardLink& shard : links_.shards) shard.greeting_due = true;
  for (ChunkLink& chunk : links_.chunks) chunk.weights_due = true;
  unanswered_ = static_cast<std::int64_t>(links_.shards.size() + links_.chunks.size());
  under_way_since_ = clock_.now();
  return exchange_until([&] { return unanswered_ == 0; }, deadline);
}

Status PsStrategy::accept(const Message& message) {
  const int shard = options_.group.shard_of_rank(message.from());
  if (shard < 0 || !incoming_.ParseFromString(message.header())) {
    drop(message);
    return Status();
  }
  ShardLink& from = links_.shards[static_cast<std::size_t>(shard)];
  if (incoming_.has_reject() && from.greeting_due && phase_ == Phase::kJoining) {
    return Status(Code::kInvalidArgument, incoming_.reject().reason());
  }
  // What is read is not a step's.
  if (incoming_.has_rows_read() && tables_.accept(incoming_.rows_read(), message, shard)) return Status();
  if (incoming_.has_rows_listed()) {
    const Result<bool> accepted = tables_.accept(incoming_.rows_listed(), message, shard);
    if (!accepted.ok()) return accepted.status();
    if (*accepted) return Status();
  }
  const bool accepted = incoming_.has_weights() ? accept_weights(message, shard)
                        : incoming_.has_rows()  ? accept_rows(message, shard)
                                                : accept_greeting(shard);
  if (!accepted) {
    drop(message);
    return Status();
  }
  if (--unanswered_ == 0) communication_ += clock_.now() - under_way_since_;
  return Status();
}

// Whether the message, whose header is in incoming_, is a greeting that is due.
bool PsStrategy::accept_greeting(int shard) {
  const bool expected = phase_ == Phase::kJoining   ? incoming_.has_welcome()
                        : phase_ == Phase::kLeaving ? incoming_.has_farewell()
                                                    : false;
  if (!expected || (incoming_.has_welcome() && !tables_.accept(incoming_.welcome(), shard))) return false;
  return std::exchange(links_.shards[static_cast<std::size_t>(shard)].greeting_due, false);
}

// Whether `message`, whose header is in incoming_, carries weights that are due; they are then in the arena.
bool PsStrategy::accept_weights(const Message& message, int shard) {
  const wire::Weights& weights = incoming_.weights();
  const ShardLink& from = links_.shards[static_cast<std::size_t>(shard)];
  if (weights.chunk() >= from.buckets.size() || from.greeting_due) return false;
  ChunkLink& chunk = links_.chunks[from.buckets[weights.chunk()]];
  // A welcome says how many pushes of this worker the shard has applied.
  const std::int64_t clock = phase_ == Phase::kJoining ? std::max<std::int64_t>(weights.clock(), 0)
                             : chunk.weights_due       ? chunk.answered
                                                       : chunk.answered + 1;
  if (!chunk.is_awaited() || weights.clock() != clock || weights.staleness() < 0 || weights.version() < chunk.version ||
      !take_weights(chunk, message.payload())) {
    return false;
  }
  if (!chunk.weights_due) {
    scheduler_.done(static_cast<std::size_t>(shard), credit_of(chunk));
    if (chunk.ready - chunk.answered == options_.pipeline_depth + 1) --behind_;
    ++traffic_.answers;
    traffic_.late += weights.late() ? 1 : 0;
    traffic_.staleness_sum += weights.staleness();
    traffic_.staleness_max = std::max(traffic_.staleness_max, weights.staleness());
  }
  chunk.answered = clock;
  chunk.weights_due = false;
  chunk.version = weights.version();
  traffic_.bytes_in += static_cast<std::int64_t>(message.payload().size());
  if (in_backward_) {
    unreported_.push_back(chunk.range);
  } else {
    report_weights(chunk.range);
  }
  return true;
}

bool PsStrategy::take_weights(const ChunkLink& chunk, std::span<const std::byte> payload) {
  const std::span<float> arena = slice(arenas_.weights, chunk.range);
  if (options_.compression.of_answers() && !chunk.weights_due) {
    return codec_->apply_answer(push_name(chunk, chunk.answered + 1), payload, arena).ok();
  }
  if (payload.size() != arena.size_bytes()) return false;
  std::ranges::copy(payload, std::as_writable_bytes(arena).begin());
  return true;
}

bool PsStrategy::accept_rows(const Message& message, int shard) {
  if (!tables_.accept(incoming_.rows(), message, shard)) return false;
  const Range room = tables_.room_of(incoming_.rows().table());
  if (!tables_.awaits(room)) report_weights(room);
  return true;
}

std::size_t PsStrategy::credit_of(const ChunkLink& chunk) const {
  return std::max(chunk.range.size() * sizeof(float), options_.window_bytes / kMostUnanswered);
}

void PsStrategy::drop(const Message& message) {
  if (++dropped_ <= kLoggedDrops) {
    spdlog::warn("worker {}: dropped a message from {} that answers nothing", transport_.rank(), message.from());
  }
}

std::string PsStrategy::silent_shards() const {
  std::string names;
  for (int shard = 0; shard < options_.group.shards(); ++shard) {
    const ShardLink& link = links_.shards[static_cast<std::size_t>(shard)];
    const bool is_silent =
        link.greeting_due ||
        std::ranges::any_of(link.buckets, [&](std::size_t bucket) { return links_.chunks[bucket].is_awaited(); }) ||
        tables_.awaits(shard);
    if (!is_silent) continue;
    if (!names.empty()) names += ", ";
    names += fmt::format("shard {} (server {})", shard, options_.group.server_of_shard(shard));
  }
  return names;
}

SyncStats PsStrategy::take_stats(TimePoint wait_begin) {
  SyncStats stats;
  const TimePoint now = clock_.now();
  stats.forward_wait = forward_wait_;
  stats.exposed_wait = forward_wait_ + (now - wait_begin);
  if (unanswered_ > 0) communication_ += now - std::exchange(under_way_since_, now);
  if (codec_) stats.codec = codec_->take_time();
  stats.communication = std::exchange(communication_, Duration::zero());
  Traffic traffic = std::exchange(traffic_, {});
  const TableClient::Traffic rows = tables_.take_traffic();
  traffic.bytes_out += rows.bytes_out;
  traffic.bytes_in += rows.bytes_in;
  traffic.answers += rows.answers;
  traffic.staleness_sum += rows.staleness_sum;
  traffic.staleness_max = std::max(traffic.staleness_max, rows.staleness_max);
  stats.bytes_out = traffic.bytes_out;
  stats.bytes_in = traffic.bytes_in;
  stats.staleness_max = traffic.staleness_max;
  if (traffic.answers == 0) return stats;
  stats.staleness_mean = static_cast<double>(traffic.staleness_sum) / static_cast<double>(traffic.answers);
  stats.dropped = static_cast<double>(traffic.late) / static_cast<double>(traffic.answers);
  return stats;
}

}  // namespace syncopate::ps
