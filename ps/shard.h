// Shard: what one parameter-server shard decides and computes: who has joined, which push updates the weights and when,
// who is answered with which version. No I/O, no threads, no time: messages in, the answers that are now due out.
//
// Push and pull are one: a push is answered with weights.
//   sync        gradients are held until all live workers have pushed theirs, then applied as one update: their mean,
//               summed in rank order, so that the result does not depend on who came first.
//   bounded:k   each push is applied as it comes; its answer waits until the slowest live worker is within k clocks,
//   and
//               then carries the weights of that moment (Ho et al. 2013, section 2).
//   async       each push is applied and answered as it comes.
//
// What comes from outside is checked: a call with a message that cannot be right fails with invalid argument, says why,
// and changes nothing. Any other failure (memory) is the end of the shard. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/optimizer.h"
#include "common/status.h"
#include "ps/consistency.h"
#include "ps/group.h"
#include "ps/shard_weights.h"

namespace syncopate::ps {

struct ShardOptions {
  PsGroup group;
  int shard = 0;  // which of group.shards()
  Consistency consistency;
  OptimizerConfig optimizer;
};

struct JoinRequest {
  int worker = 0;
  std::uint64_t layout_hash = 0;
  std::uint64_t arena_size = 0;    // floats of the whole arena
  std::span<const float> weights;  // from the chief the initial weights of the shard's range, else empty
};

struct PushRequest {
  int worker = 0;
  std::int64_t clock = 0;    // pushes of this worker to this shard, this one included
  std::int64_t version = 0;  // of the weights that the gradient was computed from
  float learning_rate = 0;
  std::span<const float> gradient;
};

struct Answer {
  enum class Kind {
    kWeights,       // to a join or a push
    kFinalWeights,  // to a leave
    kReject,        // to a join; the reason is refusal()
  };
  Kind kind = Kind::kWeights;
  int worker = 0;
  std::int64_t clock = 0;          // of the push that is answered, 0 for a join
  std::int64_t version = 0;        // updates that the weights have had
  std::int64_t staleness = 0;      // of the push that is answered: updates between its pull and itself
  std::span<const float> weights;  // stay as they are while `pending` counts a send of them
  PendingSends* pending = nullptr;
};

struct ShardCounters {
  std::int64_t pushes = 0;  // accepted
  std::int64_t updates = 0;
  std::int64_t staleness_sum = 0;  // over pushes that were applied
  std::int64_t staleness_max = 0;
  std::int64_t copies = 0;  // updates that could not be made in place
  std::int64_t workers_lost = 0;
};

class Shard {
 public:
  Shard(ShardOptions options, WeightsBuffers::Allocate allocate, WeightsBuffers::Settle settle);

  // The answers that a call has made due, valid until the next call. Send each from its `weights` in place.
  using Answers = Result<std::span<const Answer>>;

  // All are answered once every live worker has joined: with the chief's weights, or with a rejection if their layouts
  // differ or the chief is lost. The weights are copied.
  Answers on_join(const JoinRequest& request);

  // The gradient is used within the call, or is held: it must stay as it is while holds_gradient(worker).
  Answers on_push(const PushRequest& request);

  // The worker will push no more; it is answered, with the final weights, once no live worker is left.
  Answers on_leave(int worker);

  // The worker is gone: what is held of it is dropped, it is answered no more, nobody waits for it. Knows no failure
  // for a worker that had gone before.
  Answers on_worker_lost(int worker);

  bool holds_gradient(int worker) const { return !of(worker).gradient.empty(); }
  // Every worker has had its last answer or is lost.
  bool done() const;
  // Why the job could not start; empty if it has started, or still may.
  const std::string& refusal() const { return refusal_; }

  // Of the shard's part of the arena; known once the chief has joined.
  std::span<const float> weights() const { return weights_.current(); }
  std::int64_t version() const { return weights_.version(); }
  ShardCounters counters() const;

 private:
  enum class State { kExpected, kJoined, kLeaving, kFinished, kLost };

  struct Worker {
    State state = State::kExpected;
    std::uint64_t layout_hash = 0;
    std::uint64_t arena_size = 0;
    std::int64_t clock = 0;
    bool owed = false;         // an answer to a join or a push
    std::int64_t version = 0;  // of its last answer
    std::int64_t staleness = 0;
    std::span<const float> gradient;  // held, sync only
    float learning_rate = 0;

    bool live() const { return state == State::kExpected || state == State::kJoined; }
  };

  Worker& of(int worker) { return workers_[static_cast<std::size_t>(worker)]; }
  const Worker& of(int worker) const { return workers_[static_cast<std::size_t>(worker)]; }
  int worker_count() const { return static_cast<int>(workers_.size()); }
  bool any(State state) const;
  std::int64_t slowest_clock() const;

  Status check(const JoinRequest& request) const;
  Status check(const PushRequest& request) const;

  // What a change of the workers' states has made due.
  Answers due();
  void start_if_all_joined();
  std::string find_refusal() const;
  Status update_if_all_pushed();
  void answer(int worker, Answer::Kind kind);

  ShardOptions options_;
  ShardWeights weights_;
  std::vector<Worker> workers_;
  bool started_ = false;
  std::string refusal_;
  std::vector<Answer> due_;
  std::vector<std::span<const float>> gradients_;  // of the update under way
  ShardCounters counters_;
};

}  // namespace syncopate::ps
