// Shard: what one parameter-server shard decides and computes: who has joined, which push updates which chunk and when,
// who is answered with what. No I/O, no threads, no time: messages in, the answers that are now due out.
//
// What comes from outside is checked: a call with a message that cannot be right fails with invalid argument, says why,
// and changes nothing. Any other failure (memory) is the end of the shard. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "common/optimizer.h"
#include "common/status.h"
#include "ps/chunk.h"
#include "ps/consistency.h"
#include "ps/membership.h"
#include "ps/weights_pool.h"

namespace syncopate::ps {

struct ShardOptions {
  int workers = 1;
  Consistency consistency;
  OptimizerConfig optimizer;
  StalenessOptions staleness;
};

struct Answer {
  enum class Kind {
    kWelcome,   // to a join; the weights of all chunks follow
    kReject,    // to a join; the reason is refusal()
    kWeights,   // of one chunk: to a push, or behind a welcome or a farewell
    kFarewell,  // to a leave; the final weights of all chunks follow
  };
  Kind kind = Kind::kWeights;
  int worker = 0;
  std::size_t chunk = 0;
  Chunk::Answer weights;  // of kWeights
  bool greets = false;    // behind a welcome or a farewell
};

struct ShardCounters {
  std::int64_t pushes = 0;         // of chunks; accepted
  std::int64_t late = 0;           // of these: dropped, since their update had been made
  std::int64_t updates = 0;        // of chunks
  std::int64_t staleness_sum = 0;  // over pushes that were applied
  std::int64_t staleness_max = 0;
  std::int64_t copies = 0;  // updates that could not be made in place
  std::int64_t workers_lost = 0;
};

class Shard {
 public:
  Shard(ShardOptions options, WeightsPool::Allocate allocate, WeightsPool::Settle settle);

  // The answers that a call has made due, valid until the next call. Send each from its weights in place.
  using Answers = Result<std::span<const Answer>>;

  // All are answered once every live worker has joined and the chief's weights are there: with a welcome, or with a
  // rejection if they claim different arenas or the chief is lost.
  Answers on_join(int worker, const ArenaClaim& claim);

  // The chief's weights of one chunk, in the order of chunks, once it has joined. They are copied.
  Answers on_initial(int worker, std::size_t chunk, std::span<const float> weights);

  // See Chunk::push.
  Answers on_push(const PushRequest& request);

  // The worker will push no more; it is answered once no live worker is left.
  Answers on_leave(int worker);

  // The worker is gone: it is answered no more, nobody waits for it. Knows no failure for one that had gone before.
  Answers on_worker_lost(int worker);

  bool holds_gradient(int worker, std::size_t chunk) const { return chunks_[chunk].holds_gradient(worker); }
  // Every worker has had its last answer or is lost.
  bool done() const { return members_.done(); }
  // Why the job could not start; empty if it has started, or still may.
  const std::string& refusal() const { return members_.refusal(); }

  // Known once the chief has joined.
  std::size_t chunks() const { return chunks_.size(); }
  const Chunk& chunk(std::size_t index) const { return chunks_[index]; }
  ShardCounters counters() const;

 private:
  Status check_initial(int worker, std::size_t chunk, std::span<const float> weights) const;
  bool has_all_weights() const { return chief_has_joined_ && created_ == chunks_.size(); }
  bool owes_any(int worker) const;

  // Adds what has become due to due_: of the start, of one chunk, of the end.
  void start_if_all_joined();
  void answer_pushes(std::size_t chunk);
  Status end_if_all_left();
  void answer(int worker, std::size_t chunk, bool greets = false);
  Answers due_after_departure();

  ShardOptions options_;
  WeightsPool pool_;
  Membership members_;
  bool chief_has_joined_ = false;
  std::deque<Chunk> chunks_;
  std::size_t created_ = 0;         // of chunks_, in order
  std::uint64_t created_size_ = 0;  // floats of these
  std::vector<Answer> due_;
  std::int64_t workers_lost_ = 0;
};

}  // namespace syncopate::ps
