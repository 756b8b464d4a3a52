#include "ps/server/shard_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "common/text/log.h"
#include "ps/transport_memory.h"

namespace syncopate::ps {
namespace {

// How long a lost worker may stay unnoticed while nothing arrives.
constexpr Duration kPollInterval = std::chrono::milliseconds(50);
// Only the first few dropped messages are logged; all are counted.
constexpr std::int64_t kLoggedDrops = 10;

}  // namespace

ServerFigures figures_of(const ShardServerCounters& counters, const TransportCounters& transport,
                         const std::optional<Duration>& core_wait) {
  return {.updates = counters.shard.updates,
          .pushes = counters.shard.pushes,
          .dropped = counters.dropped + rejections(transport),
          .busy = counters.load.busy,
          .serving = counters.load.serving,
          .bytes_in = counters.load.bytes_in,
          .bytes_out = counters.load.bytes_out,
          .core_wait = core_wait};
}

ShardServer::ShardServer(ShardServerOptions options, Transport& transport, const Clock& clock)
    : options_(std::move(options)),
      transport_(transport),
      clock_(clock),
      shard_number_(options_.group.shard_of_rank(transport.rank())),
      number_(options_.group.number_of_shard(shard_number_)),
      work_(clock),
      account_(number_, clock, options_.tracer) {
  assert(transport.size() == options_.group.size() && shard_number_ >= 0);
  if (options_.role == ReplicaRole::kHead) {
    to_tail_.emplace(transport, clock, options_.group.other_replica_of(transport.rank()), options_.timeout);
  }
  if (options_.compression.of_pushes()) {
    codec_.emplace(ShardCodec::Options{.compression = options_.compression,
                                       .workers = options_.group.workers,
                                       .shard = shard_number_,
                                       .holds_gradients = options_.consistency.updates_together()},
                   [&transport](std::size_t elements) { return allocate_floats(transport, elements); });
  }
  if (options_.role != ReplicaRole::kTail) make_shard(options_.restored);
}

void ShardServer::make_shard(const TrainingState* restored) {
  shard_.emplace(
      ShardOptions{.workers = options_.group.workers,
                   .consistency = options_.consistency,
                   .optimizer = options_.optimizer,
                   .staleness = options_.staleness,
                   .shard = static_cast<std::size_t>(shard_number_),
                   .shards = static_cast<std::size_t>(options_.group.shards()),
                   .seed = options_.seed,
                   .there = options_.there,
                   .agrees_on_rates = options_.agrees_on_rates,
                   .hosts = options_.hosts,
                   .leaves_out = options_.leaves_out,
                   .function = options_.function,
                   .restored = restored},
      [this](std::size_t elements) { return allocate_floats(transport_, elements); },
      [this](const PendingSends& pending) { return transport_.wait(pending, clock_.now() + options_.timeout); });
  const bool is_head = options_.role == ReplicaRole::kHead;
  sender_.emplace(AnswerSenderOptions{.shard = number_,
                                      .compression = options_.compression,
                                      .timeout = options_.timeout,
                                      .is_silent = is_head,
                                      .keeps_mirrors = keeps_mirrors(),
                                      .restored = restored,
                                      .tracer = options_.tracer},
                  *shard_, codec_ ? &*codec_ : nullptr, transport_, clock_, work_, [this](int worker) {
                    // The head tells a tail's shard who is lost, as the control plane tells the head.
                    if (options_.role == ReplicaRole::kAlone) worker_lost(worker);
                  });
}

Status ShardServer::serve() {
  Status status = begin();
  if (status.ok()) status = serve_until_done();
  held_.clear();
  end_cuts();
  return status.in(fmt::format("shard {}", number_));
}

Status ShardServer::begin() {
  if (options_.role == ReplicaRole::kTail) return receive_state();
  return to_tail_ ? replicated(to_tail_->send(options_.restored)) : Status();
}

Status ShardServer::receive_state() {
  const int head = options_.group.other_replica_of(transport_.rank());
  while (!received_.complete()) {
    SYNCOPATE_ASSIGN_OR_RETURN(const std::optional<Message> message, receive());
    if (!message.has_value()) continue;
    const bool is_state =
        message->from() == head && incoming_.ParseFromString(message->header()) && incoming_.has_state();
    if (!is_state) {
      drop(message->from(), "no piece of a state");
      continue;
    }
    SYNCOPATE_RETURN_IF_ERROR(received_.accept(incoming_.state(), *message));
  }
  make_shard(received_.state());
  return Status();
}

Status ShardServer::serve_until_done() {
  while (true) {
    SYNCOPATE_RETURN_IF_ERROR(take_lost_workers());
    take_requests();
    advance_cuts();
    look_for_missing();
    SYNCOPATE_RETURN_IF_ERROR(end_meetings());
    if (shard_->done()) break;
    if (shard_->members().started()) received_.clear();
    SYNCOPATE_ASSIGN_OR_RETURN(std::optional<Message> message, receive());
    if (message.has_value() && !is_cut_off_) SYNCOPATE_RETURN_IF_ERROR(handle(std::move(*message)));
  }
  SYNCOPATE_RETURN_IF_ERROR(sender_->wait_for_last_sends());
  if (to_tail_ && !is_cut_off_) SYNCOPATE_RETURN_IF_ERROR(to_tail_->wait_for_last_sends());
  return shard_->refusal().empty() ? Status() : Status::invalid_argument(shard_->refusal());
}

Result<std::optional<Message>> ShardServer::receive() {
  const TimePoint next = shard_ ? shard_->next_time() : TimePoint::max();
  Result<Message> message = transport_.poll(std::min(clock_.now() + kPollInterval, next));
  if (message.ok()) return std::optional<Message>(std::move(*message));
  // Whether a peer that is gone was a worker which had not left yet is the control plane's to say, through worker_lost.
  if (message.status().code() == Code::kPeerLost) log_debug("shard {}: {}", number_, message.status().message());
  const bool is_nothing =
      message.status().code() == Code::kPeerLost || message.status().code() == Code::kDeadlineExceeded;
  if (!is_nothing) return message.status();
  return std::optional<Message>();
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
  if (options_.role == ReplicaRole::kTail) return Status();
  for (const int worker : lost) {
    if (to_tail_ && !is_cut_off_) SYNCOPATE_RETURN_IF_ERROR(replicated(to_tail_->worker_lost(worker)));
    SYNCOPATE_RETURN_IF_ERROR(lose(worker));
  }
  return Status();
}

Status ShardServer::lose(int worker) {
  log_warning("shard {}: goes on without worker {}", number_, worker);
  const Shard::Answers answers = shard_->on_worker_lost(worker);
  held_.let_go_of_pushes(*shard_);
  held_.let_go_of_rows(*shard_);
  return finish(worker, answers);
}

void ShardServer::on_missing(Duration patience, std::function<void(int)> report) {
  if (options_.role == ReplicaRole::kTail || !options_.consistency.waits_for_others()) return;
  missing_.emplace(patience);
  report_missing_ = std::move(report);
}

void ShardServer::look_for_missing() {
  if (!missing_) return;
  const TimePoint now = clock_.now();
  if (!missing_->is_due(now)) return;
  if (is_excused_ && is_excused_()) missing_->forgive();
  for (const int worker : missing_->look(awaited_at(*shard_), now)) report_missing_(worker);
}

Status ShardServer::end_meetings() {
  const TimePoint now = clock_.now();
  if (shard_->next_time() > now) return Status();
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<const Answer> answers, shard_->on_time(now));
  held_.let_go_of_pushes(*shard_);
  return sender_->send(answers);
}

void ShardServer::save_when(std::int64_t version, TrainingState memory, StateDone done) {
  {
    const std::lock_guard lock(mutex_);
    if (!has_ended_) {
      requests_.push_back({ShardCut(version, std::move(memory)), std::move(done)});
      return;
    }
  }
  done(ended());
}

Status ShardServer::ended() const {
  return Status::cancelled(fmt::format("shard {} ended before it came to be saved", number_));
}

void ShardServer::take_requests() {
  const std::lock_guard lock(mutex_);
  std::ranges::move(requests_, std::back_inserter(cuts_));
  requests_.clear();
}

void ShardServer::advance_cuts() {
  std::erase_if(cuts_, [&](Request& request) {
    const Result<bool> is_whole = request.cut.advance(*shard_, keeps_mirrors() ? &*codec_ : nullptr);
    if (is_whole.ok() && !*is_whole) return false;
    request.done(is_whole.ok() ? Result<TrainingState>(request.cut.take()) : is_whole.status());
    return true;
  });
}

void ShardServer::end_cuts() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  take_requests();
  for (Request& request : cuts_) request.done(ended());
  cuts_.clear();
}

bool ShardServer::take_header(Message& message) {
  const bool is_tail = options_.role == ReplicaRole::kTail;
  const auto workers = static_cast<std::uint32_t>(options_.group.workers);
  if (!incoming_.ParseFromString(message.header())) {
    drop(message.from(), "its bytes are not a message to a shard");
  } else if (is_tail && (message.from() != options_.group.other_replica_of(transport_.rank()) ||
                         incoming_.origin() < 1 || incoming_.origin() > workers)) {
    drop(message.from(), "nothing that the head hands on");
  } else if (!is_tail && (!options_.group.is_worker(message.from()) || incoming_.origin() != 0)) {
    drop(message.from(), "not a worker");
  } else {
    // Both replicas decide by the same times.
    if (!is_tail) incoming_.set_arrived(clock_.now().time_since_epoch().count());
    if (is_tail) message = std::move(message).renumbered(static_cast<int>(incoming_.origin()) - 1);
    return true;
  }
  return false;
}

Status ShardServer::forward(const Message& message) {
  return to_tail_ ? replicated(to_tail_->forward(message.from(), incoming_, message.payload())) : Status();
}

Status ShardServer::replicated(const Status& status) {
  if (status.ok() || status.code() == Code::kCancelled || status.code() == Code::kResourceExhausted) return status;
  log_warning("shard {}: the tail cannot be reached: {}", number_, status.message());
  is_cut_off_ = true;
  return Status();
}

Status ShardServer::handle(Message message) {
  if (!take_header(message)) return Status();
  const int from = message.from();
  if (options_.role == ReplicaRole::kTail && incoming_.has_lost()) return lose(from);
  SYNCOPATE_RETURN_IF_ERROR(forward(message));
  if (is_cut_off_) return Status();
  std::optional<ShardWork::Busy> busy;
  if (incoming_.has_push() || incoming_.has_push_rows() || incoming_.has_pull()) {
    busy.emplace(work_, message.payload().size());
  }
  TraceSpan span = account_.begin(from, incoming_, message.payload().size());
  const Shard::Answers answers = dispatch(message);
  const bool is_push = answers.ok() && incoming_.has_push();
  if (is_push) account_.accepted(incoming_.push(), *shard_, span);
  const bool is_rows_push = answers.ok() && incoming_.has_push_rows();
  const std::size_t chunk = is_push ? incoming_.push().chunk() : 0;
  const std::size_t table = is_rows_push ? incoming_.push_rows().table() : 0;
  if (is_push && !codec_ && shard_->has_pending_gradient(from, chunk)) {
    held_.keep_push(chunk, std::move(message));
  } else if (is_rows_push && shard_->has_pending_rows(from, table)) {
    held_.keep_rows(table, std::move(message));
  } else {
    message = Message();  // its sender gets its memory back before its answer
  }
  // They may have waited for a worker that leaves, alone.
  const bool is_leave = answers.ok() && incoming_.has_leave();
  // A push whose own gradient still waits has made no update.
  if (is_push && !shard_->has_pending_gradient(from, chunk)) held_.let_go_of_pushes(*shard_, chunk);
  if (is_leave) held_.let_go_of_pushes(*shard_);
  if (is_rows_push || is_leave) held_.let_go_of_rows(*shard_);
  return finish(from, answers);
}

template <typename Push>
Step ShardServer::step_of(int worker, const Push& push) const {
  return {.worker = worker,
          .clock = push.clock(),
          .learning_rate = push.learning_rate(),
          .arrived = TimePoint(Duration(incoming_.arrived()))};
}

Shard::Answers ShardServer::dispatch(const Message& message) {
  const int from = message.from();
  SYNCOPATE_ASSIGN_OR_RETURN(const std::span<const float> floats, floats_in(message));
  switch (incoming_.kind_case()) {
    case wire::Header::kJoin:
      return take_join(from, message.payload());
    case wire::Header::kTable:
      return shard_->on_table(from, incoming_.table().table(),
                              {.rows = incoming_.table().rows(),
                               .width = incoming_.table().width(),
                               .rows_a_step = incoming_.table().rows_a_step(),
                               .limit = incoming_.table().limit(),
                               .number = incoming_.table().number()});
    case wire::Header::kUndecayed:
      return shard_->on_undecayed(
          from, {incoming_.undecayed().bounds().data(), static_cast<std::size_t>(incoming_.undecayed().bounds_size())});
    case wire::Header::kInitial:
      return shard_->on_initial(from, incoming_.initial().chunk(),
                                {incoming_.initial().begin(), incoming_.initial().end()}, floats,
                                incoming_.initial().updates());
    case wire::Header::kMemory:
      return shard_->on_memory(from, incoming_.memory().chunk(), incoming_.memory().memory(),
                               incoming_.memory().begin(), floats);
    case wire::Header::kPush:
      return shard_->on_push(
          {.step = step_of(from, incoming_.push()),
           .chunk = incoming_.push().chunk(),
           .version = incoming_.push().version(),
           .gradient = floats},
          incoming_.push().has_own_rate() ? std::optional(incoming_.push().own_rate()) : std::nullopt);
    case wire::Header::kPull:
      return shard_->on_pull({.worker = from,
                              .table = incoming_.pull().table(),
                              .clock = incoming_.pull().clock(),
                              .slot = incoming_.pull().slot(),
                              .known = incoming_.pull().known(),
                              .keys = own_keys(message)});
    case wire::Header::kPushRows:
      return shard_->on_rows_push(
          {.step = step_of(from, incoming_.push_rows()), .table = incoming_.push_rows().table(), .gradients = floats});
    case wire::Header::kReadRows:
      return shard_->on_read_rows({.worker = from,
                                   .table = incoming_.read_rows().table(),
                                   .read = incoming_.read_rows().read(),
                                   .keys = own_keys(message)});
    case wire::Header::kListRows: {
      SYNCOPATE_RETURN_IF_ERROR(sender_->list_rows(from, incoming_.list_rows()));
      return std::span<const Answer>();
    }
    case wire::Header::kReadChunk: {
      SYNCOPATE_RETURN_IF_ERROR(sender_->read_chunk(from, incoming_.read_chunk()));
      return std::span<const Answer>();
    }
    case wire::Header::kLeave:
      return shard_->on_leave(from);
    case wire::Header::kGoodbye:
      return shard_->on_goodbye(from);
    default:
      return Status::invalid_argument("no message that a worker sends to a shard");
  }
}

Shard::Answers ShardServer::take_join(int from, std::span<const std::byte> payload) {
  const wire::Join& join = incoming_.join();
  SYNCOPATE_ASSIGN_OR_RETURN(TensorRanges tensors, ranges_in(payload, join.arena_size()));
  const bool was_laid_out = shard_->is_laid_out();
  Shard::Answers answers = shard_->on_join(from, {.layout_hash = join.layout_hash(),
                                                  .arena_size = join.arena_size(),
                                                  .shard_size = join.shard_size(),
                                                  .chunks = join.chunks(),
                                                  .tables = join.tables()});
  // The shard's chunks are made as this worker described them. Nothing has been decoded yet.
  if (codec_ && !was_laid_out && shard_->is_laid_out()) codec_->know_tensors(std::move(tensors));
  return answers;
}

RowKeys ShardServer::own_keys(const Message& message) {
  const RowKeys keys = keys_in(message.payload());
  keys_.assign(keys.begin(), keys.end());
  return keys_;
}

Result<std::span<const float>> ShardServer::floats_in(const Message& message) {
  if (!codec_ || !incoming_.has_push()) {
    if (message.payload().size() % sizeof(float) == 0) return message.floats();
    return Status::invalid_argument(fmt::format("{} bytes are no floats", message.payload().size()));
  }
  const std::size_t chunk = incoming_.push().chunk();
  // The shard reports itself what is wrong with these. A gradient that it holds stays where it is.
  const bool is_there = chunk < shard_->chunks() && shard_->chunk(chunk).created();
  if (!is_there || shard_->has_pending_gradient(message.from(), chunk)) return std::span<const float>();
  clock_.processed(Processing::kDecode, shard_->chunk(chunk).weights().size() * sizeof(float));
  return codec_->decode({message.from(), shard_number_, chunk, incoming_.push().clock(), shard_->range(chunk).begin},
                        message.payload(), shard_->chunk(chunk).weights().size());
}

Status ShardServer::finish(int from, const Shard::Answers& answers) {
  if (answers.ok()) return sender_->send(*answers);
  if (answers.status().code() != Code::kInvalidArgument) return answers.status();
  drop(from, answers.status().message());
  return Status();
}

bool ShardServer::save(TrainingState& state) const {
  if (shard_ && shard_->complete()) {
    state.clear();
    shard_->save(state);
    return true;
  }
  const TrainingState* const restored = received_.complete() ? received_.state() : options_.restored;
  if (restored == nullptr) return false;
  if (restored == &state) return true;
  state.clear();
  state.merge(*restored);
  return true;
}

ShardServerCounters ShardServer::counters() const {
  return {shard_ ? shard_->counters() : ShardCounters(), work_.load(), dropped_};
}

void ShardServer::drop(int from, const std::string& reason) {
  if (++dropped_ <= kLoggedDrops) log_warning("shard {}: dropped a message from {}: {}", number_, from, reason);
}

}  // namespace syncopate::ps
