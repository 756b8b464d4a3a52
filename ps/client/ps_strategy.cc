#include "ps/client/ps_strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "common/exposed_wait.h"
#include "common/optimizer/decay_parts.h"
#include "common/text/log.h"
#include "ps/client/join_request.h"
#include "ps/transport_memory.h"

namespace syncopate::ps {
namespace {

// Only the first few dropped messages are logged; all are counted.
constexpr std::int64_t kLoggedDrops = 10;
// How long one receive of a wait without a deadline may take.
constexpr Duration kSlice = std::chrono::milliseconds(500);

}  // namespace

PsStrategy::PsStrategy(PsStrategyOptions options, Transport& transport, const Clock& clock, Activity* activity)
    : options_(std::move(options)),
      transport_(transport),
      clock_(clock),
      activity_(activity),
      sender_(options_.group, options_.heads, transport, clock, options_.timeout),
      traffic_(clock),
      pusher_({.order = options_.push_order,
               .window_bytes = options_.window_bytes,
               .pipeline_depth = options_.pipeline_depth,
               .tracer = options_.tracer},
              transport.rank(), links_, sender_, traffic_),
      tables_(sender_, traffic_),
      reader_(links_, sender_) {
  assert(transport.size() == options_.group.size() && options_.group.is_worker(transport.rank()));
  if (options_.compression.of_pushes()) codec_.emplace(options_.compression, clock_);
}

PsStrategy::~PsStrategy() {
  if (phase_ != Phase::kLeft || tables_.tables() == 0) return;
  if (const Status status = tables_.say_goodbye(); !status.ok()) log_warning("goodbye: {}", status.message());
}

Result<ParamArenas> PsStrategy::allocate(const ParamLayout& layout) {
  if (!layout.tables().empty() && (options_.pipeline_depth > 0 || options_.push_order != PushScheduler::Order::kFifo)) {
    return Status::invalid_argument(
        "row-sparse tables are pulled step by step: without a pipeline, and in the order of backward");
  }
  const auto allocate_arena = [&](std::span<float>& arena) {
    Result<std::span<float>> memory =
        options_.make_arena ? options_.make_arena(layout.size()) : allocate_floats(transport_, layout.size());
    if (memory.ok()) arena = *memory;
    return memory.status();
  };
  SYNCOPATE_RETURN_IF_ERROR(allocate_arena(arenas_.weights));
  SYNCOPATE_RETURN_IF_ERROR(allocate_arena(arenas_.gradients));
  undecayed_ = undecayed_ranges(layout);
  links_ = arena_links(layout, static_cast<std::size_t>(options_.group.shards()), options_.sharding);
  if (codec_) {
    SYNCOPATE_RETURN_IF_ERROR(codec_->allocate(transport_, links_.ranges(), layout.size(), pusher_.slots(),
                                               options_.undoes_pushes, tensor_ranges(layout)));
    SYNCOPATE_ASSIGN_OR_RETURN(tensors_, allocate_ranges(transport_, tensor_ranges(layout)));
  }
  SYNCOPATE_RETURN_IF_ERROR(pusher_.allocate(transport_, arenas_, codec_ ? &*codec_ : nullptr));
  SYNCOPATE_RETURN_IF_ERROR(tables_.allocate(transport_, layout, arenas_));
  return arenas_;
}

Status PsStrategy::restore(const TrainingState& state) {
  if (!options_.goes_on && transport_.rank() == options_.chief) {
    for (const char* const memory : state_part::kOptimizer) {
      for (const Range& piece : state.pieces(memory)) {
        brought_.put(memory, piece.begin, state.values(memory, piece));
        brought_.step = state.step;
      }
    }
  }
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
  const JoinRequest request{.links = links_,
                            .weights = arenas_.weights,
                            .tensors = tensors_,
                            .undecayed = undecayed_,
                            .describes = options_.goes_on || transport_.rank() == options_.chief,
                            .brings_weights = !options_.goes_on,
                            .optimizer = brought_,
                            .transport = transport_};
  SYNCOPATE_RETURN_IF_ERROR(send_join_request(request, tables_, sender_, pusher_.pending(0)).in("join"));
  brought_ = TrainingState();
  // The answers are written to where the initial weights are sent from.
  SYNCOPATE_RETURN_IF_ERROR(transport_.wait(pusher_.pending(0), deadline).in("join: the initial weights"));
  SYNCOPATE_RETURN_IF_ERROR(receive_all_weights(deadline).in("join"));
  take_up();
  phase_ = Phase::kTraining;
  traffic_.begin();
  std::vector<Range> buckets = links_.ranges();
  for (std::size_t table = tables_.tables(); table-- > 0;) buckets.push_back(tables_.room_of(table));
  return buckets;
}

void PsStrategy::take_up() {
  round_ = tables_.tables() > 0 ? tables_.least_pushed() : links_.least_answered();
  if (tables_.tables() > 0 && !links_.chunks.empty()) round_ = std::min(round_, links_.least_answered());
  first_round_ = round_;
  tables_.take_up(round_);
  for (std::size_t bucket = 0; bucket < links_.chunks.size(); ++bucket) {
    ChunkLink& chunk = links_.chunks[bucket];
    chunk.ready = chunk.pushed = chunk.answered;
    if (codec_) codec_->take_up(transport_.rank(), bucket, chunk.answered);
  }
}

void PsStrategy::begin_step(const StepContext& step) {
  step_ = step;
  failure_ = Status();
  waits_ = {};
  backward_codec_ = {};
  if (codec_) codec_->begin_epoch(step.epoch);
  if (tables_.tables() == 0) return;
  traffic_.expect(tables_.tables() * links_.shards.size());
  failure_ = tables_.begin_step(step);
}

void PsStrategy::gradient_ready(std::size_t bucket) {
  if (!failure_.ok()) return;
  in_backward_ = true;
  if (bucket >= links_.chunks.size()) {
    failure_ = tables_.push(table_of(bucket), step_.learning_rate);
    return;
  }
  if (links_.chunks[bucket].ready > round_) return;  // pushed before the shard was lost, and applied
  const Duration codec_before = codec_ ? codec_->time() : Duration::zero();
  failure_ = pusher_.ready(bucket, step_);
  // A worker that runs ahead still computes with the weights that an answer would replace.
  const bool takes_answers = options_.answers_in_backward && options_.pipeline_depth == 0;
  if (failure_.ok() && !pusher_.all_sent() && takes_answers) failure_ = take_answers();
  if (codec_) backward_codec_ += codec_->time() - codec_before;
}

Result<SyncStats> PsStrategy::finish_step() {
  set_activity("wait for weights");
  in_backward_ = false;
  const TimePoint wait_begin = clock_.now();
  const TimePoint deadline = wait_begin + options_.timeout;
  traffic_.begin_wait();
  for (const Range& range : unreported_) report_weights(range);
  unreported_.clear();
  Status status = failure_;
  if (status.ok() && options_.overlap_forward) status = take_answers();
  if (status.ok() && !options_.overlap_forward) status = exchange_until([&] { return pusher_.keeps_up(); }, deadline);
  // The next step writes to where these gradients were sent from.
  if (status.ok() && pusher_.keeps_up()) status = transport_.wait(pusher_.pending(step_.step + 1), deadline);
  if (!status.ok()) return status.in(fmt::format("step {}", step_.step));
  ++round_;
  return take_stats(wait_begin);
}

Status PsStrategy::weights_needed(Range range) {
  if (!failure_.ok()) return failure_.in(fmt::format("step {}", step_.step));
  if (pusher_.keeps_up() && !tables_.awaits(range)) return Status();
  set_activity("wait for weights");
  const TimePoint wait_begin = clock_.now();
  const ExposedWait wait(clock_, waits_, &SyncStats::forward_wait);
  const TraceSpan span(options_.tracer, {.kind = TraceKind::kWait, .number = step_.step});
  const auto are_here = [&] {
    return !tables_.awaits(range) && std::ranges::none_of(links_.chunks, [&](const ChunkLink& chunk) {
      return overlap(chunk.range, range) && chunk.ready > chunk.answered;
    });
  };
  Status status = exchange_until(are_here, wait_begin + options_.timeout);
  // Backward, which comes next, writes to where the gradients were sent from.
  if (status.ok() && pusher_.keeps_up()) status = transport_.wait(pusher_.pending(0), wait_begin + options_.timeout);
  return status.in(fmt::format("step {}", step_.step));
}

std::optional<std::int64_t> PsStrategy::updates() const {
  const auto least = std::ranges::min_element(links_.chunks, {}, &ChunkLink::version);
  return least == links_.chunks.end() ? std::nullopt : std::optional(least->version);
}

Status PsStrategy::leave() {
  set_activity("wait for the last answers");
  const auto nothing_due = [&] { return pusher_.all_answered(); };
  SYNCOPATE_RETURN_IF_ERROR(exchange_until(nothing_due, timeout_from_now()).in("leave"));
  // What follows lasts as long as the slowest worker trains.
  if (activity_ != nullptr) activity_->rest("leave", step_.step);
  phase_ = Phase::kLeaving;
  for (int shard = 0; shard < options_.group.shards(); ++shard) {
    sender_.header().mutable_leave();
    SYNCOPATE_RETURN_IF_ERROR(sender_.send(shard, {}, nullptr).in("leave"));
  }
  SYNCOPATE_RETURN_IF_ERROR(receive_all_weights(std::nullopt).in("leave"));
  phase_ = Phase::kLeft;
  return Status();
}

Status PsStrategy::read_optimizer(TrainingState& state) {
  if (phase_ != Phase::kTraining || !pusher_.all_answered()) {
    return Status::invalid_argument("what servers' optimizer remembers can be read between steps");
  }
  set_activity("read the optimizer");
  SYNCOPATE_RETURN_IF_ERROR(reader_.begin(arenas_.weights, state).in("read the optimizer"));
  SYNCOPATE_RETURN_IF_ERROR(
      exchange_until([&] { return !reader_.is_due(); }, timeout_from_now()).in("read the optimizer"));
  report_weights({0, arenas_.weights.size()});
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
  return Status::invalid_argument(
      fmt::format("rows of table {} of {}, which can be read after join", table, tables_.tables()));
}

Status PsStrategy::finish_reading() {
  return exchange_until([&] { return !tables_.reads_due(); }, timeout_from_now()).in("read rows");
}

void PsStrategy::set_activity(const char* operation) {
  if (activity_ != nullptr) activity_->set(operation, step_.step);
}

Status PsStrategy::take_answers() {
  while (traffic_.any_due()) {
    const Result<Message> message = transport_.poll(TimePoint{});
    if (message.status().code() == Code::kDeadlineExceeded) break;
    if (message.status().code() == Code::kPeerLost) continue;
    if (!message.ok()) return message.status();
    SYNCOPATE_RETURN_IF_ERROR(accept(*message));
  }
  return pusher_.push_what_may_go();
}

template <typename Complete>
Status PsStrategy::exchange_until(Complete&& complete, std::optional<TimePoint> deadline) {
  while (true) {
    SYNCOPATE_RETURN_IF_ERROR(pusher_.push_what_may_go());
    if (complete()) return Status();
    const Result<Message> message = deadline ? transport_.receive(*deadline) : transport_.poll(clock_.now() + kSlice);
    if (message.ok()) {
      SYNCOPATE_RETURN_IF_ERROR(accept(*message));
      continue;
    }
    const Code code = message.status().code();
    if (code == Code::kDeadlineExceeded && deadline) {
      return Status(code, fmt::format("no answer from {} for {:.3g} s", silent_shards(), seconds(options_.timeout)));
    }
    // A peer that is gone may be a worker, which not every mode waits for; a shard that is gone stays silent.
    if (code == Code::kPeerLost) log_debug("worker {}: {}", transport_.rank(), message.status().message());
    if (code != Code::kDeadlineExceeded && code != Code::kPeerLost) return message.status();
  }
}

Status PsStrategy::receive_all_weights(std::optional<TimePoint> deadline) {
  for (ShardLink& shard : links_.shards) shard.greeting_due = true;
  for (ChunkLink& chunk : links_.chunks) chunk.weights_due = true;
  traffic_.expect_only(links_.shards.size() + links_.chunks.size());
  return exchange_until([&] { return !traffic_.any_due(); }, deadline);
}

Status PsStrategy::accept(const Message& message) {
  const int shard = options_.group.shard_of_rank(message.from());
  if (shard < 0 || !incoming_.ParseFromString(message.header())) {
    drop(message);
    return Status();
  }
  ShardLink& from = links_.shards[static_cast<std::size_t>(shard)];
  if (incoming_.has_reject() && from.greeting_due && phase_ == Phase::kJoining) {
    return Status::invalid_argument(incoming_.reject().reason());
  }
  // What is read is not a step's.
  if (incoming_.has_rows_read() && tables_.accept(incoming_.rows_read(), message, shard)) return Status();
  if (incoming_.has_rows_listed()) {
    SYNCOPATE_ASSIGN_OR_RETURN(const bool accepted, tables_.accept(incoming_.rows_listed(), message, shard));
    if (accepted) return Status();
  }
  if (incoming_.has_chunk_read()) {
    SYNCOPATE_ASSIGN_OR_RETURN(const bool accepted, reader_.accept(incoming_.chunk_read(), message, shard));
    if (accepted) return Status();
  }
  if (incoming_.has_weights() && incoming_.weights().has_differing()) return rates_differ(incoming_.weights());
  const bool accepted = incoming_.has_weights() ? accept_weights(message, shard)
                        : incoming_.has_rows()  ? accept_rows(message, shard)
                                                : accept_greeting(shard);
  if (!accepted) {
    drop(message);
    return Status();
  }
  traffic_.come();
  traffic_.heard(shard);
  return Status();
}

Status PsStrategy::rates_differ(const wire::Weights& weights) const {
  return Status::invalid_argument(fmt::format(
      "rank {} makes this step at a learning rate of {:.8g}, rank {} at {:.8g}: all ranks must have the same",
      weights.differing(), weights.its_rate(), transport_.rank(), weights.own_rate()));
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
  TraceSpan span(options_.tracer, traced_answer(message, shard),
                 options_.tracer != nullptr && options_.tracer->traces_push(weights.clock()));
  ChunkLink& chunk = links_.chunks[from.buckets[weights.chunk()]];
  // A welcome says how many pushes of this worker the shard has applied.
  const std::int64_t clock = phase_ == Phase::kJoining ? std::max<std::int64_t>(weights.clock(), 0)
                             : chunk.weights_due       ? chunk.answered
                                                       : chunk.answered + 1;
  if (!chunk.is_awaited() || weights.clock() != clock || weights.staleness() < 0 || weights.version() < chunk.version ||
      !take_weights(chunk, message.payload())) {
    span.discard();
    return false;
  }
  if (chunk.weights_due) span.discard();
  if (!chunk.weights_due) {
    pusher_.answered(chunk);
    traffic_.answered(weights.staleness(), weights.late());
  }
  chunk.answered = clock;
  chunk.weights_due = false;
  chunk.version = weights.version();
  traffic_.received(message.payload().size());
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
    return codec_->apply_answer(push_name(transport_.rank(), chunk, chunk.answered + 1), payload, arena).ok();
  }
  if (payload.size() != arena.size_bytes()) return false;
  std::ranges::copy(payload, std::as_writable_bytes(arena).begin());
  return true;
}

TraceEvent PsStrategy::traced_answer(const Message& message, int shard) const {
  const wire::Weights& weights = incoming_.weights();
  return {.kind = TraceKind::kAnswerTaken,
          .shard = options_.group.number_of_shard(shard),
          .peer = transport_.rank(),
          .item = static_cast<std::int32_t>(weights.chunk()),
          .number = weights.clock(),
          .value = weights.staleness(),
          .bytes = static_cast<std::int64_t>(message.payload().size())};
}

bool PsStrategy::accept_rows(const Message& message, int shard) {
  if (!tables_.accept(incoming_.rows(), message, shard)) return false;
  const Range room = tables_.room_of(incoming_.rows().table());
  if (!tables_.awaits(room)) report_weights(room);
  return true;
}

void PsStrategy::drop(const Message& message) {
  if (++dropped_ <= kLoggedDrops) {
    log_warning("worker {}: dropped a message from {} that answers nothing", transport_.rank(), message.from());
  }
}

std::string PsStrategy::silent_shards() const {
  std::string names;
  for (int shard = 0; shard < options_.group.shards(); ++shard) {
    const ShardLink& link = links_.shards[static_cast<std::size_t>(shard)];
    const bool is_silent =
        link.greeting_due ||
        std::ranges::any_of(link.buckets, [&](std::size_t bucket) { return links_.chunks[bucket].is_awaited(); }) ||
        tables_.awaits(shard) || reader_.awaits(shard);
    if (!is_silent) continue;
    if (!names.empty()) names += ", ";
    names += fmt::format("shard {} (server {})", options_.group.number_of_shard(shard),
                         options_.group.server_of_shard(shard));
  }
  return names;
}

SyncStats PsStrategy::take_stats(TimePoint wait_begin) {
  SyncStats stats = traffic_.take();
  stats.forward_wait = waits_.forward_wait;
  stats.pass_core_wait = waits_.pass_core_wait;
  stats.exposed_wait = waits_.exposed_wait + (clock_.now() - wait_begin);
  if (codec_) stats.codec = codec_->take_time();
  stats.backward_codec = backward_codec_;
  return stats;
}

}  // namespace syncopate::ps
