#include "ps/shard.h"

#include <fmt/format.h>

#include <algorithm>

#include "ps/group.h"

namespace syncopate::ps {
namespace {

Status refuse(std::string reason) { return Status(Code::kInvalidArgument, std::move(reason)); }

}  // namespace

Shard::Shard(ShardOptions options, WeightsPool::Allocate allocate, WeightsPool::Settle settle)
    : options_(options), pool_(std::move(allocate), std::move(settle)), members_(options.workers) {
  due_.reserve(static_cast<std::size_t>(options.workers));
}

Shard::Answers Shard::on_join(int worker, const ArenaClaim& claim) {
  due_.clear();
  SYNCOPATE_RETURN_IF_ERROR(members_.join(worker, claim));
  if (worker == kChief) {
    chief_has_joined_ = true;
    SYNCOPATE_RETURN_IF_ERROR(pool_.reserve(claim.shard_size));
    for (std::uint64_t i = 0; i < claim.chunks; ++i) {
      chunks_.emplace_back(ChunkOptions{options_.consistency, options_.optimizer, options_.staleness}, members_, pool_);
    }
  }
  start_if_all_joined();
  return std::span<const Answer>(due_);
}

Shard::Answers Shard::on_initial(int worker, std::size_t chunk, std::span<const float> weights) {
  due_.clear();
  SYNCOPATE_RETURN_IF_ERROR(check_initial(worker, chunk, weights));
  SYNCOPATE_RETURN_IF_ERROR(chunks_[chunk].create(weights));
  ++created_;
  created_size_ += weights.size();
  start_if_all_joined();
  return std::span<const Answer>(due_);
}

Shard::Answers Shard::on_push(const PushRequest& request) {
  due_.clear();
  if (!members_.started() || !members_.is_joined(request.worker)) {
    return refuse(fmt::format("a push from worker {}, which is not in the job", request.worker));
  }
  if (request.chunk >= chunks_.size()) {
    return refuse(fmt::format("a push to chunk {} of {}", request.chunk, chunks_.size()));
  }
  SYNCOPATE_RETURN_IF_ERROR(chunks_[request.chunk].push(request));
  answer_pushes(request.chunk);
  return std::span<const Answer>(due_);
}

Shard::Answers Shard::on_leave(int worker) {
  due_.clear();
  if (owes_any(worker)) return refuse(fmt::format("worker {} leaves before its last push was answered", worker));
  SYNCOPATE_RETURN_IF_ERROR(members_.leave(worker));
  for (Chunk& chunk : chunks_) chunk.returned(worker);
  return due_after_departure();
}

Shard::Answers Shard::on_worker_lost(int worker) {
  due_.clear();
  if (!members_.lose(worker)) return std::span<const Answer>(due_);
  ++workers_lost_;
  for (Chunk& chunk : chunks_) chunk.lose(worker);
  start_if_all_joined();
  return due_after_departure();
}

ShardCounters Shard::counters() const {
  ShardCounters total;
  total.workers_lost = workers_lost_;
  for (const Chunk& chunk : chunks_) {
    total.pushes += chunk.counters().pushes;
    total.late += chunk.counters().late;
    total.updates += chunk.weights().version();
    total.staleness_sum += chunk.counters().staleness_sum;
    total.staleness_max = std::max(total.staleness_max, chunk.counters().staleness_max);
    total.copies += chunk.weights().copies();
  }
  return total;
}

Status Shard::check_initial(int worker, std::size_t chunk, std::span<const float> weights) const {
  if (worker != kChief || !members_.is_joined(worker)) {
    return refuse(fmt::format("initial weights from worker {}, which is not the chief of the job", worker));
  }
  if (chunk >= chunks_.size() || chunk != created_) {
    return refuse(fmt::format("initial weights of chunk {}; {} of {} are there", chunk, created_, chunks_.size()));
  }
  const std::uint64_t left = members_.claim_of(worker).shard_size - created_size_;
  const bool is_last = chunk + 1 == chunks_.size();
  if (weights.empty() || weights.size() > left || (is_last && weights.size() < left)) {
    return refuse(fmt::format("{} initial weights of chunk {}, where {} are left", weights.size(), chunk, left));
  }
  return Status();
}

bool Shard::owes_any(int worker) const {
  return std::any_of(chunks_.begin(), chunks_.end(), [&](const Chunk& chunk) { return chunk.owes(worker); });
}

void Shard::start_if_all_joined() {
  if (!members_.start_if_all_joined(has_all_weights())) return;
  for (int worker = 0; worker < options_.workers; ++worker) {
    if (!members_.is_joined(worker)) continue;
    due_.push_back({.kind = members_.started() ? Answer::Kind::kWelcome : Answer::Kind::kReject, .worker = worker});
    if (!members_.started()) members_.finish(worker);
    for (std::size_t chunk = 0; chunk < chunks_.size() && members_.started(); ++chunk) answer(worker, chunk, true);
  }
}

void Shard::answer_pushes(std::size_t chunk) {
  for (int worker = 0; worker < options_.workers; ++worker) {
    if (chunks_[chunk].may_answer(worker)) answer(worker, chunk);
  }
}

Status Shard::end_if_all_left() {
  if (!members_.started() || members_.any_live()) return Status();
  for (Chunk& chunk : chunks_) SYNCOPATE_RETURN_IF_ERROR(chunk.finish());
  for (int worker = 0; worker < options_.workers; ++worker) {
    if (!members_.is_leaving(worker)) continue;
    due_.push_back({.kind = Answer::Kind::kFarewell, .worker = worker});
    for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) answer(worker, chunk, true);
    members_.finish(worker);
  }
  return Status();
}

void Shard::answer(int worker, std::size_t chunk, bool greets) {
  due_.push_back({.kind = Answer::Kind::kWeights,
                  .worker = worker,
                  .chunk = chunk,
                  .weights = chunks_[chunk].answer(worker),
                  .greets = greets});
}

// Those who stay may be waiting for nothing but the one who has gone.
Shard::Answers Shard::due_after_departure() {
  for (std::size_t chunk = 0; chunk < chunks_.size() && members_.started(); ++chunk) {
    SYNCOPATE_RETURN_IF_ERROR(chunks_[chunk].update_if_enough_pushed());
    answer_pushes(chunk);
  }
  SYNCOPATE_RETURN_IF_ERROR(end_if_all_left());
  return std::span<const Answer>(due_);
}

}  // namespace syncopate::ps
