#include "ps/shard_server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "ps/transport_memory.h"

namespace syncopate::ps {
namespace {

// How long a lost worker may stay unnoticed while nothing arrives.
constexpr Duration kPollInterval = std::chrono::milliseconds(50);
// A reason that fits in a header with what is around it.
constexpr std::size_t kLongestReason = kMaxHeaderBytes - 16;
// Of dropped messages only the first few are logged; all are counted.
constexpr std::int64_t kLoggedDrops = 10;

}  // namespace

ShardServer::ShardServer(ShardServerOptions options, Transport& transport, const Clock& clock)
    : options_(std::move(options)),
      transport_(transport),
      clock_(clock),
      number_(options_.group.shard_of_rank(transport.rank())),
      shard_(
          {.workers = options_.group.workers,
           .consistency = options_.consistency,
           .optimizer = options_.optimizer,
           .staleness = options_.staleness,
           .shard = static_cast<std::size_t>(number_),
           .shards = static_cast<std::size_t>(options_.group.shards()),
           .seed = options_.seed},
          [&transport](std::size_t elements) { return allocate_floats(transport, elements); },
          [this](const PendingSends& pending) { return transport_.wait(pending, clock_.now() + options_.timeout); }),
      rooms_(transport) {
  assert(transport.size() == options_.group.size() && number_ >= 0);
  if (!options_.compression.of_pushes()) return;
  codec_.emplace(ShardCodec::Options{.compression = options_.compression,
                                     .workers = options_.group.workers,
                                     .shard = number_,
                                     .holds_gradients = options_.consistency.updates_together()},
                 [&transport](std::size_t elements) { return allocate_floats(transport, elements); });
}

Status ShardServer::serve() {
  const Status status = serve_until_done();
  held_.clear();
  held_rows_.clear();
  return status.in(fmt::format("shard {}", number_));
}

Status ShardServer::serve_until_done() {
  while (true) {
    SYNCOPATE_RETURN_IF_ERROR(take_lost_workers());
    if (shard_.done()) break;
    Result<Message> message = transport_.receive(clock_.now() + kPollInterval);
    if (message.ok()) {
      SYNCOPATE_RETURN_IF_ERROR(handle(std::move(*message)));
    } else if (message.status().code() == Code::kPeerLost) {
      // Whether that peer was a worker which had not left yet is the control plane's to say, through worker_lost.
      spdlog::debug("shard {}: {}", number_, message.status().message());
    } else if (message.status().code() != Code::kDeadlineExceeded) {
      return message.status();
    }
  }
  SYNCOPATE_RETURN_IF_ERROR(wait_for_last_sends());
  return shard_.refusal().empty() ? Status() : Status(Code::kInvalidArgument, shard_.refusal());
}

Status ShardServer::wait_for_last_sends() {
  const TimePoint deadline = clock_.now() + options_.timeout;
  for (const PendingSends* sends : final_sends_) {
    const Status status = transport_.wait(*sends, deadline);
    if (status.ok()) continue;
    if (status.code() != Code::kDeadlineExceeded) return status;
    spdlog::warn("shard {}: a worker has not read the final weights for {:.3g} s", number_, seconds(options_.timeout));
    break;
  }
  return Status();
}

void ShardServer::worker_lost(int rank) {
  assert(options_.group.is_worker(rank));
  const std::lock_guard lock(mutex_);
  lost_.push_back(rank);
}

Status ShardServer::take_lost_workers() {
  std::vector<int> lost;
  {
    const std::lock_guard lock(mutex_);
    lost.swap(lost_);
  }
  for (const int worker : lost) {
    spdlog::warn("shard {}: goes on without worker {}", number_, worker);
    const Shard::Answers answers = shard_.on_worker_lost(worker);
    let_go_of_gradients();
    let_go_of_rows();
    SYNCOPATE_RETURN_IF_ERROR(finish(worker, answers));
  }
  return Status();
}

Status ShardServer::handle(Message message) {
  const int from = message.from();
  if (!options_.group.is_worker(from)) {
    drop(from, "not a worker");
    return Status();
  }
  const Shard::Answers answers = dispatch(message);
  const bool is_push = answers.ok() && incoming_.has_push();
  const bool is_rows_push = answers.ok() && incoming_.has_push_rows();
  const std::size_t chunk = is_push ? incoming_.push().chunk() : 0;
  if (is_push && !codec_ && shard_.holds_gradient(from, chunk)) {
    held(from, chunk) = std::move(message);
  } else if (is_rows_push && shard_.holds_rows(from, incoming_.push_rows().table())) {
    held_rows(from, incoming_.push_rows().table()) = std::move(message);
  } else {
    message = Message();  // its sender gets its memory back before its answer
  }
  // They may have waited for a worker that leaves, alone.
  const bool is_leave = answers.ok() && incoming_.has_leave();
  if (is_push) let_go_of_gradients(chunk);
  if (is_leave) let_go_of_gradients();
  if (is_rows_push || is_leave) let_go_of_rows();
  return finish(from, answers);
}

Shard::Answers ShardServer::dispatch(const Message& message) {
  const int from = message.from();
  if (!incoming_.ParseFromString(message.header())) {
    return Status(Code::kInvalidArgument, "its bytes are not a message to a shard");
  }
  const Result<std::span<const float>> floats = floats_in(message);
  if (!floats.ok()) return floats.status();
  switch (incoming_.kind_case()) {
    case wire::Header::kJoin:
      return shard_.on_join(from, {.layout_hash = incoming_.join().layout_hash(),
                                   .arena_size = incoming_.join().arena_size(),
                                   .shard_size = incoming_.join().shard_size(),
                                   .chunks = incoming_.join().chunks(),
                                   .tables = incoming_.join().tables()});
    case wire::Header::kTable:
      return shard_.on_table(from, incoming_.table().table(),
                             {.rows = incoming_.table().rows(),
                              .width = incoming_.table().width(),
                              .rows_a_step = incoming_.table().rows_a_step(),
                              .limit = incoming_.table().limit()});
    case wire::Header::kInitial:
      return shard_.on_initial(from, incoming_.initial().chunk(), *floats);
    case wire::Header::kPush:
      return shard_.on_push({.worker = from,
                             .chunk = incoming_.push().chunk(),
                             .clock = incoming_.push().clock(),
                             .version = incoming_.push().version(),
                             .learning_rate = static_cast<float>(incoming_.push().learning_rate()),
                             .gradient = *floats});
    case wire::Header::kPull:
      return shard_.on_pull({.worker = from,
                             .table = incoming_.pull().table(),
                             .clock = incoming_.pull().clock(),
                             .slot = incoming_.pull().slot(),
                             .known = incoming_.pull().known(),
                             .keys = keys_in(message.payload())});
    case wire::Header::kPushRows:
      return shard_.on_rows_push({.worker = from,
                                  .table = incoming_.push_rows().table(),
                                  .clock = incoming_.push_rows().clock(),
                                  .learning_rate = static_cast<float>(incoming_.push_rows().learning_rate()),
                                  .gradients = *floats});
    case wire::Header::kReadRows:
      return shard_.on_read_rows(from, incoming_.read_rows().table(), keys_in(message.payload()));
    case wire::Header::kListRows:
      return list_rows(from, incoming_.list_rows().table(), incoming_.list_rows().offset());
    case wire::Header::kLeave:
      return shard_.on_leave(from);
    case wire::Header::kGoodbye:
      return shard_.on_goodbye(from);
    default:
      return Status(Code::kInvalidArgument, "no message that a worker sends to a shard");
  }
}

Result<std::span<const float>> ShardServer::floats_in(const Message& message) {
  if (!codec_ || !incoming_.has_push()) {
    if (message.payload().size() % sizeof(float) == 0) return message.floats();
    return Status(Code::kInvalidArgument, fmt::format("{} bytes are no floats", message.payload().size()));
  }
  const std::size_t chunk = incoming_.push().chunk();
  // Of these the shard says itself what is wrong; a gradient that it holds stays where it is.
  if (chunk >= shard_.chunks() || shard_.holds_gradient(message.from(), chunk)) return std::span<const float>();
  return codec_->decode({message.from(), number_, chunk, incoming_.push().clock()}, message.payload(),
                        shard_.chunk(chunk).weights().size());
}

Message& ShardServer::held(int worker, std::size_t chunk) {
  const auto workers = static_cast<std::size_t>(options_.group.workers);
  held_.resize(std::max(held_.size(), shard_.chunks() * workers));
  return held_[chunk * workers + static_cast<std::size_t>(worker)];
}

// Of those that the shard has used, or will not use any more.
void ShardServer::let_go_of_gradients(std::size_t chunk) {
  if (held_.empty()) return;
  for (int worker = 0; worker < options_.group.workers; ++worker) {
    if (!shard_.holds_gradient(worker, chunk)) held(worker, chunk) = Message();
  }
}

void ShardServer::let_go_of_gradients() {
  for (std::size_t chunk = 0; chunk < shard_.chunks(); ++chunk) let_go_of_gradients(chunk);
}

Message& ShardServer::held_rows(int worker, std::size_t table) {
  const auto workers = static_cast<std::size_t>(options_.group.workers);
  held_rows_.resize(shard_.tables() * workers);
  return held_rows_[table * workers + static_cast<std::size_t>(worker)];
}

void ShardServer::let_go_of_rows() {
  for (std::size_t table = 0; table < shard_.tables(); ++table) {
    for (int worker = 0; worker < options_.group.workers; ++worker) {
      if (!shard_.holds_rows(worker, table)) held_rows(worker, table) = Message();
    }
  }
}

Status ShardServer::finish(int from, const Shard::Answers& answers) {
  if (!answers.ok()) {
    if (answers.status().code() != Code::kInvalidArgument) return answers.status();
    drop(from, answers.status().message());
    return Status();
  }
  bool is_final = false;
  for (const Answer& answer : *answers) {
    is_final = is_final || answer.kind == Answer::Kind::kFarewell;
    if (is_final && answer.kind == Answer::Kind::kWeights) final_sends_.push_back(answer.weights.pending);
    SYNCOPATE_RETURN_IF_ERROR(send(answer));
  }
  return Status();
}

Status ShardServer::send(const Answer& answer) {
  switch (answer.kind) {
    case Answer::Kind::kWelcome:
      outgoing_.mutable_welcome();
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
      return send_rows(answer);
  }
  const Result<ShardCodec::Answer> body = payload_of(answer);
  if (!body.ok()) return body.status();
  return send(answer.worker, body->payload, body->pending);
}

Status ShardServer::send_rows(const Answer& answer) {
  TableShard& table = shard_.table(answer.table);
  const std::size_t floats = answer.rows.keys.size() * table.width();
  const Result<std::span<std::byte>> room =
      rooms_.take(answer.worker, answer.table, floats * sizeof(float), timeout_from_now());
  if (!room.ok()) return not_answered(answer.worker, room.status());
  SYNCOPATE_RETURN_IF_ERROR(table.read(answer.rows.keys, {reinterpret_cast<float*>(room->data()), floats}));
  return send(answer.worker, *room, &rooms_.pending(answer.worker, answer.table));
}

Shard::Answers ShardServer::list_rows(int worker, std::size_t table, std::size_t offset) {
  const Result<TableShard::Page> page = shard_.on_list_rows(worker, table, offset);
  if (!page.ok()) return page.status();
  const std::span<const std::byte> keys = std::as_bytes(page->keys);
  const Result<std::span<std::byte>> room = rooms_.take(worker, table, keys.size(), timeout_from_now());
  Status status = room.status();
  if (room.ok()) {
    std::ranges::copy(keys, room->begin());
    wire::RowsListed& listed = *outgoing_.mutable_rows_listed();
    listed.set_table(table);
    listed.set_offset(offset);
    listed.set_total(page->total);
    status = send(worker, *room, &rooms_.pending(worker, table));
  } else {
    status = not_answered(worker, status);
  }
  if (!status.ok()) return status;
  return std::span<const Answer>();
}

Status ShardServer::send(int worker, std::span<const std::byte> payload, PendingSends* pending) {
  outgoing_.SerializeToString(&outgoing_bytes_);
  const Status status = transport_.send(worker, outgoing_bytes_, payload, pending, timeout_from_now());
  return status.ok() ? status : not_answered(worker, status);
}

Status ShardServer::not_answered(int worker, const Status& status) {
  if (status.code() == Code::kCancelled || status.code() == Code::kResourceExhausted) return status;
  spdlog::warn("shard {}: worker {} cannot be answered: {}", number_, worker, status.message());
  worker_lost(worker);
  return Status();
}

Result<ShardCodec::Answer> ShardServer::payload_of(const Answer& answer) {
  const std::span<const float> weights = answer.weights.weights;
  const bool is_compressed = options_.compression.of_answers() && answer.kind == Answer::Kind::kWeights;
  if (is_compressed && !answer.greets) {
    return codec_->encode({answer.worker, number_, answer.chunk, answer.weights.clock}, weights);
  }
  if (is_compressed) codec_->sent_in_full(answer.worker, answer.chunk, weights);
  return ShardCodec::Answer{std::as_bytes(weights), answer.weights.pending};
}

void ShardServer::drop(int from, const std::string& reason) {
  if (++dropped_ <= kLoggedDrops) spdlog::warn("shard {}: dropped a message from {}: {}", number_, from, reason);
}

}  // namespace syncopate::ps
