#include "ps/shard_server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

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

ShardOptions shard_options(const ShardServerOptions& options, const Transport& transport) {
  return {.group = options.group,
          .shard = options.group.shard_of_rank(transport.rank()),
          .consistency = options.consistency,
          .optimizer = options.optimizer};
}

}  // namespace

ShardServer::ShardServer(ShardServerOptions options, Transport& transport, const Clock& clock)
    : options_(std::move(options)),
      transport_(transport),
      clock_(clock),
      number_(options_.group.shard_of_rank(transport.rank())),
      shard_(
          shard_options(options_, transport),
          [&transport](std::size_t elements) { return allocate_floats(transport, elements); },
          [this](const PendingSends& pending) { return transport_.wait(pending, clock_.now() + options_.timeout); }),
      held_(static_cast<std::size_t>(options_.group.workers)) {
  assert(transport.size() == options_.group.size() && number_ >= 0);
}

Status ShardServer::serve() {
  const Status status = serve_until_done();
  for (std::optional<Message>& message : held_) message.reset();
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
  if (last_sends_ == nullptr) return Status();
  const Status status = transport_.wait(*last_sends_, clock_.now() + options_.timeout);
  if (status.code() != Code::kDeadlineExceeded) return status;
  spdlog::warn("shard {}: a worker has not read the final weights for {:.3g} s", number_, seconds(options_.timeout));
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
    SYNCOPATE_RETURN_IF_ERROR(finish(worker, shard_.on_worker_lost(worker)));
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
  if (answers.ok() && shard_.holds_gradient(from)) {
    held_[static_cast<std::size_t>(from)] = std::move(message);
  } else {
    message = Message();  // its sender gets its memory back before its answer
  }
  return finish(from, answers);
}

Shard::Answers ShardServer::dispatch(const Message& message) {
  const int from = message.from();
  if (!header_.ParseFromString(message.header()) || message.payload().size() % sizeof(float) != 0) {
    return Status(Code::kInvalidArgument, "its bytes are not a message to a shard");
  }
  switch (header_.kind_case()) {
    case wire::Header::kJoin:
      return shard_.on_join({.worker = from,
                             .layout_hash = header_.join().layout_hash(),
                             .arena_size = header_.join().arena_size(),
                             .weights = message.floats()});
    case wire::Header::kPush:
      return shard_.on_push({.worker = from,
                             .clock = header_.push().clock(),
                             .version = header_.push().version(),
                             .learning_rate = static_cast<float>(header_.push().learning_rate()),
                             .gradient = message.floats()});
    case wire::Header::kLeave:
      return shard_.on_leave(from);
    default:
      return Status(Code::kInvalidArgument, "neither join nor push nor leave");
  }
}

Status ShardServer::finish(int from, const Shard::Answers& answers) {
  if (!answers.ok()) {
    if (answers.status().code() != Code::kInvalidArgument) return answers.status();
    drop(from, answers.status().message());
    return Status();
  }
  for (int worker = 0; worker < options_.group.workers; ++worker) {
    if (!shard_.holds_gradient(worker)) held_[static_cast<std::size_t>(worker)].reset();
  }
  for (const Answer& answer : *answers) SYNCOPATE_RETURN_IF_ERROR(send(answer));
  return Status();
}

Status ShardServer::send(const Answer& answer) {
  if (answer.kind == Answer::Kind::kReject) {
    header_.mutable_reject()->set_reason(shard_.refusal().substr(0, kLongestReason));
  } else {
    wire::Weights& weights = *header_.mutable_weights();
    weights.set_clock(answer.clock);
    weights.set_version(answer.version);
    weights.set_staleness(answer.staleness);
    weights.set_final(answer.kind == Answer::Kind::kFinalWeights);
    if (weights.final()) last_sends_ = answer.pending;
  }
  header_.SerializeToString(&header_bytes_);
  const Status status = transport_.send(answer.worker, header_bytes_, std::as_bytes(answer.weights), answer.pending,
                                        clock_.now() + options_.timeout);
  if (status.ok() || status.code() == Code::kCancelled) return status;
  spdlog::warn("shard {}: worker {} cannot be answered: {}", number_, answer.worker, status.message());
  worker_lost(answer.worker);
  return Status();
}

void ShardServer::drop(int from, const std::string& reason) {
  if (++dropped_ <= kLoggedDrops) spdlog::warn("shard {}: dropped a message from {}: {}", number_, from, reason);
}

}  // namespace syncopate::ps
