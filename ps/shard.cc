#include "ps/shard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace syncopate::ps {
namespace {

constexpr std::uint64_t kLargestArena = std::uint64_t{1} << 40;

Status refuse(std::string reason) { return Status(Code::kInvalidArgument, std::move(reason)); }

}  // namespace

Shard::Shard(ShardOptions options, WeightsBuffers::Allocate allocate, WeightsBuffers::Settle settle)
    : options_(std::move(options)),
      weights_(options_.group.workers, options_.optimizer, std::move(allocate), std::move(settle)),
      workers_(static_cast<std::size_t>(options_.group.workers)) {
  due_.reserve(workers_.size());
  gradients_.reserve(workers_.size());
}

Shard::Answers Shard::on_join(const JoinRequest& request) {
  SYNCOPATE_RETURN_IF_ERROR(check(request));
  if (request.worker == kChief) SYNCOPATE_RETURN_IF_ERROR(weights_.create(request.weights));
  Worker& worker = of(request.worker);
  worker.state = State::kJoined;
  worker.layout_hash = request.layout_hash;
  worker.arena_size = request.arena_size;
  worker.owed = true;
  return due();
}

Shard::Answers Shard::on_push(const PushRequest& request) {
  SYNCOPATE_RETURN_IF_ERROR(check(request));
  weights_.buffers().returned(request.worker);
  Worker& worker = of(request.worker);
  worker.staleness = version() - request.version;
  worker.clock = request.clock;
  worker.owed = true;
  ++counters_.pushes;
  if (options_.consistency.updates_together()) {
    worker.gradient = request.gradient;
    worker.learning_rate = request.learning_rate;
  } else {
    counters_.staleness_sum += worker.staleness;
    counters_.staleness_max = std::max(counters_.staleness_max, worker.staleness);
    SYNCOPATE_RETURN_IF_ERROR(weights_.update({&request.gradient, 1}, request.learning_rate));
  }
  return due();
}

Shard::Answers Shard::on_leave(int worker) {
  if (!started_ || of(worker).state != State::kJoined)
    return refuse(fmt::format("worker {} is not in the job", worker));
  if (of(worker).owed) return refuse(fmt::format("worker {} leaves before its last push was answered", worker));
  weights_.buffers().returned(worker);
  of(worker).state = State::kLeaving;
  return due();
}

Shard::Answers Shard::on_worker_lost(int worker) {
  Worker& lost = of(worker);
  if (lost.state != State::kLost && lost.state != State::kFinished) {
    lost.state = State::kLost;
    lost.owed = false;
    lost.gradient = {};
    ++counters_.workers_lost;
  }
  return due();
}

bool Shard::done() const { return !any(State::kExpected) && !any(State::kJoined) && !any(State::kLeaving); }

ShardCounters Shard::counters() const {
  ShardCounters counters = counters_;
  counters.updates = version();
  counters.copies = weights_.buffers().copies();
  return counters;
}

bool Shard::any(State state) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const Worker& worker) { return worker.state == state; });
}

std::int64_t Shard::slowest_clock() const {
  std::int64_t slowest = std::numeric_limits<std::int64_t>::max();
  for (const Worker& worker : workers_) {
    if (worker.live()) slowest = std::min(slowest, worker.clock);
  }
  return slowest;
}

Status Shard::check(const JoinRequest& request) const {
  if (of(request.worker).state != State::kExpected) {
    return refuse(fmt::format("worker {} has joined before or is lost", request.worker));
  }
  if (request.arena_size > kLargestArena) {
    return refuse(fmt::format("an arena of {} floats; at most {}", request.arena_size, kLargestArena));
  }
  const std::size_t shard = static_cast<std::size_t>(options_.shard);
  const std::size_t expected = request.worker == kChief ? options_.group.ranges(request.arena_size)[shard].size() : 0;
  if (request.weights.size() != expected) {
    return refuse(
        fmt::format("worker {} joins with {} weights instead of {}", request.worker, request.weights.size(), expected));
  }
  return Status();
}

Status Shard::check(const PushRequest& request) const {
  const Worker& worker = of(request.worker);
  if (!started_ || worker.state != State::kJoined) {
    return refuse(fmt::format("a push from worker {}, which is not in the job", request.worker));
  }
  if (worker.owed || request.clock != worker.clock + 1) {
    return refuse(fmt::format("push {} from worker {}, which has pushed {} times and {}", request.clock, request.worker,
                              worker.clock, worker.owed ? "waits for an answer" : "has its answer"));
  }
  if (request.version != worker.version) {
    return refuse(fmt::format("worker {} pushes a gradient from version {} of the weights, but was given {}",
                              request.worker, request.version, worker.version));
  }
  if (!std::isfinite(request.learning_rate) || request.learning_rate < 0) {
    return refuse(fmt::format("a learning rate of {}", request.learning_rate));
  }
  if (request.gradient.empty() || request.gradient.size() != weights_.current().size()) {
    return refuse(
        fmt::format("a gradient of {} floats instead of {}", request.gradient.size(), weights_.current().size()));
  }
  return Status();
}

Shard::Answers Shard::due() {
  due_.clear();
  start_if_all_joined();
  SYNCOPATE_RETURN_IF_ERROR(update_if_all_pushed());
  const std::int64_t slowest = slowest_clock();
  for (int worker = 0; worker < worker_count(); ++worker) {
    if (started_ && of(worker).owed && options_.consistency.may_answer(of(worker).clock, slowest)) {
      answer(worker, Answer::Kind::kWeights);
    }
  }
  if (!any(State::kExpected) && !any(State::kJoined)) {
    for (int worker = 0; worker < worker_count(); ++worker) {
      if (of(worker).state == State::kLeaving) answer(worker, Answer::Kind::kFinalWeights);
    }
  }
  return std::span<const Answer>(due_);
}

void Shard::start_if_all_joined() {
  if (started_ || !refusal_.empty() || any(State::kExpected)) return;
  refusal_ = find_refusal();
  started_ = refusal_.empty();
  for (int worker = 0; worker < worker_count() && !started_; ++worker) {
    if (of(worker).owed) answer(worker, Answer::Kind::kReject);
  }
}

std::string Shard::find_refusal() const {
  if (!weights_.created()) return "the chief was lost before it had sent the initial weights";
  const Worker& chief = of(kChief);
  for (int i = 0; i < worker_count(); ++i) {
    const Worker& worker = of(i);
    if (worker.state != State::kJoined) continue;
    if (worker.layout_hash != chief.layout_hash || worker.arena_size != chief.arena_size) {
      return fmt::format("worker {} has layout {:016x} of {} floats, the chief {:016x} of {}", i, worker.layout_hash,
                         worker.arena_size, chief.layout_hash, chief.arena_size);
    }
  }
  return {};
}

Status Shard::update_if_all_pushed() {
  gradients_.clear();
  float learning_rate = 0;
  for (const Worker& worker : workers_) {
    if (!worker.live()) continue;
    if (worker.gradient.empty()) return Status();
    if (gradients_.empty()) learning_rate = worker.learning_rate;
    assert(worker.staleness == 0);
    gradients_.push_back(worker.gradient);
  }
  if (gradients_.empty()) return Status();
  SYNCOPATE_RETURN_IF_ERROR(weights_.update(gradients_, learning_rate));
  for (Worker& worker : workers_) worker.gradient = {};
  return Status();
}

void Shard::answer(int worker, Answer::Kind kind) {
  Worker& to = of(worker);
  to.owed = false;
  to.version = version();
  if (kind != Answer::Kind::kWeights) to.state = State::kFinished;
  Answer& answer = due_.emplace_back();
  answer.kind = kind;
  answer.worker = worker;
  answer.clock = to.clock;
  answer.version = to.version;
  answer.staleness = to.staleness;
  if (kind == Answer::Kind::kReject) return;
  const WeightsBuffers::Loan loan = weights_.buffers().lend(worker);
  answer.weights = loan.weights;
  answer.pending = loan.pending;
}

}  // namespace syncopate::ps
