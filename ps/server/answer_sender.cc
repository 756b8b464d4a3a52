#include "ps/server/answer_sender.h"

#include <algorithm>
#include <utility>

#include "common/text/log.h"
#include "ps/server/shard_state.h"

namespace syncopate::ps {
namespace {

// A reason that fits in a header with what is around it.
constexpr std::size_t kLongestReason = kMaxHeaderBytes - 16;

}  // namespace

AnswerSender::AnswerSender(const AnswerSenderOptions& options, Shard& shard, ShardCodec* codec, Transport& transport,
                           const Clock& clock, ShardWork& work, std::function<void(int)> on_unreachable)
    : options_(options),
      shard_(shard),
      codec_(codec),
      transport_(transport),
      clock_(clock),
      work_(work),
      on_unreachable_(std::move(on_unreachable)),
      rooms_(transport) {}

Status AnswerSender::send(std::span<const Answer> answers) {
  for (const Answer& answer : answers) {
    is_final_ = is_final_ || answer.kind == Answer::Kind::kFarewell;
    if (is_final_ && answer.kind == Answer::Kind::kWeights) final_sends_.push_back(answer.weights.pending);
    SYNCOPATE_RETURN_IF_ERROR(send(answer));
  }
  return Status();
}

Status AnswerSender::send(const Answer& answer) {
  switch (answer.kind) {
    case Answer::Kind::kWelcome:
      welcome(answer.worker);
      break;
    case Answer::Kind::kFarewell:
      outgoing_.mutable_farewell();
      break;
    case Answer::Kind::kReject:
      outgoing_.mutable_reject()->set_reason(shard_.refusal().substr(0, kLongestReason));
      break;
    case Answer::Kind::kWeights: {
      wire::Weights& weights = *outgoing_.mutable_weights();
      weights.set_chunk(answer.chunk);
      weights.set_clock(answer.weights.clock);
      weights.set_version(answer.weights.version);
      weights.set_staleness(answer.weights.staleness);
      weights.set_late(answer.weights.late);
      weights.clear_differing();  // the header is reused
      if (answer.rates) {
        weights.set_differing(static_cast<std::uint32_t>(answer.rates->other.worker));
        weights.set_its_rate(answer.rates->other.rate);
        weights.set_own_rate(answer.rates->own.rate);
      }
      break;
    }
    case Answer::Kind::kRows: {
      wire::Rows& rows = *outgoing_.mutable_rows();
      rows.set_table(answer.table);
      rows.set_clock(answer.rows.clock);
      rows.set_staleness(answer.rows.staleness);
      return send_rows(answer);
    }
    case Answer::Kind::kRowsRead:
      outgoing_.mutable_rows_read()->set_table(answer.table);
      outgoing_.mutable_rows_read()->set_read(answer.read);
      return send_rows(answer);
  }
  if (options_.is_silent && !options_.keeps_mirrors) return Status();
  const bool answers_push = answer.kind == Answer::Kind::kWeights && !answer.greets && !options_.is_silent;
  TraceSpan span(options_.tracer, {.kind = TraceKind::kAnswerSent, .shard = options_.shard, .peer = answer.worker},
                 answers_push && options_.tracer != nullptr && options_.tracer->traces_push(answer.weights.clock));
  const Result<ShardCodec::Answer> body = payload_of(answer);
  if (!body.ok() || options_.is_silent) return body.status();
  if (answer.kind == Answer::Kind::kWeights && !answer.greets) work_.sent(body->payload.size());
  if (TraceEvent* const event = span.event()) {
    event->item = static_cast<std::int32_t>(answer.chunk);
    event->number = answer.weights.clock;
    event->value = answer.weights.staleness;
    event->bytes = static_cast<std::int64_t>(body->payload.size());
  }
  return send(answer.worker, body->payload, body->pending);
}

void AnswerSender::welcome(int worker) {
  wire::Welcome& welcome = *outgoing_.mutable_welcome();
  welcome.clear_table_clocks();
  for (std::size_t table = 0; table < shard_.tables(); ++table) {
    welcome.add_table_clocks(shard_.table(table).clock(worker));
  }
}

Status AnswerSender::send_rows(const Answer& answer) {
  TableShard& table = shard_.table(answer.table);
  const std::size_t floats = answer.rows.keys.size() * table.width();
  if (options_.is_silent) {
    made_.resize(std::max(made_.size(), floats));
    return table.read(answer.rows.keys, std::span(made_).first(floats));
  }
  const Result<std::span<std::byte>> room =
      rooms_.take(answer.worker, answer.table, floats * sizeof(float), timeout_from_now());
  if (!room.ok()) return not_answered(answer.worker, room.status());
  SYNCOPATE_RETURN_IF_ERROR(table.read(answer.rows.keys, {reinterpret_cast<float*>(room->data()), floats}));
  if (answer.kind == Answer::Kind::kRows) work_.sent(room->size());
  return send(answer.worker, *room, &rooms_.pending(answer.worker, answer.table));
}

Status AnswerSender::list_rows(int worker, const wire::ListRows& request) {
  const std::size_t table = request.table();
  const Result<TableShard::Page> page = shard_.on_list_rows(worker, table, request.offset());
  if (!page.ok() || options_.is_silent) return page.status();
  const std::span<const std::byte> keys = std::as_bytes(page->keys);
  const Result<std::span<std::byte>> room = rooms_.take(worker, table, keys.size(), timeout_from_now());
  if (!room.ok()) return not_answered(worker, room.status());
  std::ranges::copy(keys, room->begin());
  wire::RowsListed& listed = *outgoing_.mutable_rows_listed();
  listed.set_table(table);
  listed.set_offset(request.offset());
  listed.set_total(page->total);
  listed.set_read(request.read());
  return send(worker, *room, &rooms_.pending(worker, table));
}

Status AnswerSender::read_chunk(int worker, const wire::ReadChunk& request) {
  const std::size_t number = request.chunk();
  // Workers that all have the same go on from that, and not from what a codec has left out of it.
  const bool has_weights = !options_.keeps_mirrors;
  SYNCOPATE_RETURN_IF_ERROR(shard_.on_read_chunk(worker, number, has_weights));
  const Chunk& chunk = shard_.chunk(number);
  if (has_weights && options_.compression.of_answers()) {
    codec_->sent_in_full(worker, number, chunk.weights().current());
  }
  if (options_.is_silent) return Status();
  TrainingState state;
  shard_.save_chunk(number, state);
  const Range range = shard_.range(number);
  std::vector<std::span<const float>> parts;
  if (has_weights) parts.push_back(chunk.weights().current());
  for (const char* const memory : state_part::kOptimizer) {
    if (state.covers(memory, range)) parts.push_back(state.values(memory, range));
  }
  const Result<std::span<std::byte>> room =
      rooms_.take(worker, shard_.tables(), parts.size() * range.size() * sizeof(float), timeout_from_now());
  if (!room.ok()) return not_answered(worker, room.status());
  auto to = room->begin();
  for (const std::span<const float> part : parts) to = std::ranges::copy(std::as_bytes(part), to).out;
  wire::ChunkRead& read = *outgoing_.mutable_chunk_read();
  read.set_chunk(number);
  read.set_read(request.read());
  read.set_version(chunk.weights().version());
  read.set_has_weights(has_weights);
  return send(worker, *room, &rooms_.pending(worker, shard_.tables()));
}

Status AnswerSender::wait_for_last_sends() {
  if (options_.is_silent) return Status();
  const TimePoint deadline = timeout_from_now();
  for (const PendingSends* sends : final_sends_) {
    const Status status = transport_.wait(*sends, deadline);
    if (status.ok()) continue;
    if (status.code() != Code::kDeadlineExceeded) return status;
    log_warning("shard {}: a worker has not read the final weights for {:.3g} s", options_.shard,
                seconds(options_.timeout));
    break;
  }
  return Status();
}

Status AnswerSender::send(int worker, std::span<const std::byte> payload, PendingSends* pending) {
  outgoing_.SerializeToString(&outgoing_bytes_);
  const Status status = transport_.send(worker, outgoing_bytes_, payload, pending, timeout_from_now());
  return status.ok() ? status : not_answered(worker, status);
}

Status AnswerSender::not_answered(int worker, const Status& status) {
  if (status.code() == Code::kCancelled || status.code() == Code::kResourceExhausted) return status;
  log_warning("shard {}: worker {} cannot be answered: {}", options_.shard, worker, status.message());
  // One that is gone may only have left for another membership epoch, of which nothing has come here yet: whether it is
  // lost is the control plane's to say.
  if (status.code() != Code::kPeerLost) on_unreachable_(worker);
  return Status();
}

Result<ShardCodec::Answer> AnswerSender::payload_of(const Answer& answer) {
  const std::span<const float> weights = answer.weights.weights;
  const bool is_compressed = options_.compression.of_answers() && answer.kind == Answer::Kind::kWeights;
  if (is_compressed && !answer.greets) {
    clock_.processed(Processing::kEncode, weights.size_bytes());
    return codec_->encode(
        {answer.worker, options_.shard, answer.chunk, answer.weights.clock, shard_.range(answer.chunk).begin}, weights);
  }
  if (is_compressed && begins_with_mirror(answer.chunk)) {
    return codec_->greet(answer.worker, answer.chunk, shard_.range(answer.chunk), *options_.restored);
  }
  if (is_compressed) codec_->sent_in_full(answer.worker, answer.chunk, weights);
  return ShardCodec::Answer{std::as_bytes(weights), answer.weights.pending};
}

bool AnswerSender::begins_with_mirror(std::size_t chunk) const {
  return !is_final_ && options_.restored != nullptr &&
         options_.restored->covers(shard_part::kMirror, shard_.range(chunk));
}

}  // namespace syncopate::ps
