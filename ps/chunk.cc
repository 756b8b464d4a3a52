#include "ps/chunk.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace syncopate::ps {
namespace {

Status refuse(std::string reason) { return Status(Code::kInvalidArgument, std::move(reason)); }

}  // namespace

Chunk::Chunk(Consistency consistency, OptimizerConfig optimizer, const Membership& members, WeightsPool& pool)
    : consistency_(consistency),
      members_(members),
      weights_(members.workers(), optimizer, pool),
      workers_(static_cast<std::size_t>(members.workers())) {
  gradients_.reserve(workers_.size());
}

Status Chunk::push(const PushRequest& request) {
  SYNCOPATE_RETURN_IF_ERROR(check(request));
  weights_.returned(request.worker);
  Worker& worker = of(request.worker);
  worker.staleness = weights_.version() - request.version;
  worker.pushed_version = request.version;
  worker.clock = request.clock;
  worker.owed = true;
  ++counters_.pushes;
  if (consistency_.updates_together()) {
    worker.gradient = request.gradient;
    worker.learning_rate = request.learning_rate;
    return update_if_all_pushed();
  }
  counters_.staleness_sum += worker.staleness;
  counters_.staleness_max = std::max(counters_.staleness_max, worker.staleness);
  return weights_.update({&request.gradient, 1}, request.learning_rate);
}

void Chunk::lose(int worker) {
  of(worker).owed = false;
  of(worker).gradient = {};
}

Status Chunk::update_if_all_pushed() {
  gradients_.clear();
  float learning_rate = 0;
  for (int i = 0; i < members_.workers(); ++i) {
    if (!members_.is_live(i)) continue;
    const Worker& worker = of(i);
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

bool Chunk::may_answer(int worker) const {
  return of(worker).owed && consistency_.may_answer(of(worker).clock, slowest_clock());
}

Chunk::Answer Chunk::answer(int worker) {
  Worker& to = of(worker);
  to.owed = false;
  to.version = weights_.version();
  return {.clock = to.clock,
          .version = to.version,
          .staleness = to.staleness,
          .weights = weights_.current(),
          .pending = weights_.lend(worker)};
}

Status Chunk::check(const PushRequest& request) const {
  const Worker& worker = of(request.worker);
  if (worker.owed || request.clock != worker.clock + 1) {
    return refuse(fmt::format("push {} from worker {}, which has pushed {} times and {}", request.clock, request.worker,
                              worker.clock, worker.owed ? "waits for an answer" : "has its answer"));
  }
  // A worker that runs ahead pushes gradients of weights that it was given before its last answer.
  if (request.version > worker.version || request.version < worker.pushed_version) {
    return refuse(fmt::format("worker {} pushes a gradient from version {} of the weights, but was given {} to {}",
                              request.worker, request.version, worker.pushed_version, worker.version));
  }
  if (!std::isfinite(request.learning_rate) || request.learning_rate < 0) {
    return refuse(fmt::format("a learning rate of {}", request.learning_rate));
  }
  if (request.gradient.size() != weights_.size()) {
    return refuse(fmt::format("a gradient of {} floats instead of {}", request.gradient.size(), weights_.size()));
  }
  return Status();
}

std::int64_t Chunk::slowest_clock() const {
  std::int64_t slowest = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < members_.workers(); ++i) {
    if (members_.is_live(i)) slowest = std::min(slowest, of(i).clock);
  }
  return slowest;
}

}  // namespace syncopate::ps
