// OnDemandExchange: weights and gradients of a sharded state pass between the worker that needs or has them and the one
// that owns that part of them, whenever it comes to that bucket: On-Demand Communication (Wan et al. 2026, "Revisiting
// parameter server in LLM post-training"), in which every worker is also the parameter server of its part. Nobody waits
// for workers that are still at another layer or microbatch: all meet once a step, where an owner needs everybody's
// gradients.
//
//   communication thread                      the owner's thread that answers
//     gather(bucket)   asks each owner     ->   sends its part, once it is of the version that is asked for
//     scatter(bucket)  sends each its part ->   adds it up
//     end_step()                           ->   updates each bucket once all ranks have given every pass's gradient:
//                                               its part has the next version, and who waits for it is answered
//
// A rank has two endpoints of one group of 2n: it asks as rank r, and answers as rank n + r, on a thread of its own,
// also while it computes. Gradients are added up in the order in which they come: where three ranks or more do, a sum
// has not the same bits in every run. All ranks still have the same weights, since the owner alone makes them. What is
// sent is copied first.
//
// Each pass's gradients of a bucket come from each rank in order; a message that the wire repeats is dropped.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "allreduce/collective.h"
#include "common/clock.h"
#include "common/os/aligned_buffer.h"
#include "common/param_layout.h"
#include "common/status.h"
#include "common/thread_failure.h"
#include "common/threads.h"
#include "common/transport/transport.h"

namespace syncopate::allreduce {

// By bucket and rank, the range of the arenas that the rank owns.
using PartsOfRanks = std::vector<std::vector<Range>>;

// An operation of all ranks, of which each gives the range that it owns of each bucket.
Result<PartsOfRanks> share_parts(Collective& collective, std::span<const Range> own, TimePoint deadline);

class OnDemandExchange {
 public:
  // A rank's two endpoints, of a group that has no other use. Both outlive the exchange.
  struct Endpoints {
    Transport* asks = nullptr;     // rank r of 2n
    Transport* answers = nullptr;  // rank n + r
  };
  struct Options {
    Duration timeout = std::chrono::seconds(30);  // for each wait
    Threads* threads = &os_threads();             // has the thread that answers; must outlive the exchange
  };
  // Updates this rank's part of a bucket by `sum`, that of all gradients of the step. On the thread that answers, while
  // wait_for_update() waits or is about to.
  using Update = std::function<void(std::size_t bucket, std::span<const float> sum)>;

  // The clock must outlive it.
  OnDemandExchange(Endpoints endpoints, const Options& options, const Clock& clock);
  // Ends the thread, which interrupts the endpoint that answers. Nobody may still need an answer.
  ~OnDemandExchange();

  // Begins to answer. A step has `passes` gradients of each rank. `weights`, the arena, outlives the exchange; its own
  // parts are of version `version` now.
  Status start(std::span<float> weights, PartsOfRanks parts, int passes, std::int64_t version, Update update);

  // On one thread at a time. Each is done by the deadline, or fails; the failure names the rank that was waited for.
  // Leaves the others' parts of the bucket, of the version that the step begins with, in the weights.
  Status gather(std::size_t bucket, TimePoint deadline);
  // Gives everybody their part of a pass's gradient of the bucket, which lies at its place in `gradients`, and may be
  // changed at once.
  Status scatter(std::size_t bucket, std::span<const float> gradients, TimePoint deadline);
  // The passes of this rank are over: its own parts may change.
  Status end_step(TimePoint deadline);
  // What gather and scatter have sent to and received from other ranks.
  TransportCounters counters() const { return counters_; }

  // Any thread. Returns once all own parts are of the next version, which is then the one that gather asks for.
  Status wait_for_update(TimePoint deadline);
  // What answers have sent and received since the last call.
  TransportCounters take_answered();
  // Messages that came again, or were none of this group's.
  std::int64_t dropped() const;

 private:
  using Lock = std::unique_lock<Monitor>;
  enum class Kind : std::uint32_t { kAsk, kPart, kGradient, kEndStep };
  struct Header {
    Kind kind{};
    std::uint32_t bucket = 0;
    std::int64_t version = 0;  // of the weights that are asked for, or that the gradient is of
    std::int64_t number = 0;   // kAsk and kPart: of the question; kGradient: of the pass
  };
  struct Ask {
    int from = 0;
    Header header;
  };
  // This rank's part of a bucket.
  struct Owned {
    Range range;
    AlignedBuffer sum;
    std::vector<int> passes;  // by rank: of which the gradient is in the sum
    std::int64_t version = 0;
    std::vector<Ask> waiting;  // for a later version
  };
  // Memory of the endpoint that answers.
  struct Buffer {
    std::span<std::byte> memory;
    PendingSends pending;
  };

  int rank() const { return endpoints_.asks->rank(); }
  int ranks() const { return endpoints_.asks->size() / 2; }
  std::optional<Header> header_of(const Message& message) const;
  // The thread that answers, and what it does under the lock.
  void run();
  Status answer();
  Status handle(const Message& message);
  Status reply(const Ask& ask);
  void add_gradient(std::size_t bucket, int from, std::span<const float> part);
  // Updates the bucket if all that it needs is there.
  Status update_if_due(std::size_t bucket);
  bool is_complete(const Owned& owned) const;
  // Returns, for example, "rank 2, of whose gradient 1 of 4 passes of bucket 3 has come".
  std::string missing() const;
  Result<Buffer*> buffer_of(std::size_t bytes);

  const Endpoints endpoints_;
  const Options options_;
  const Clock& clock_;
  std::span<float> weights_;
  PartsOfRanks parts_;
  int passes_ = 1;
  Update update_;

  // What the thread that asks uses:
  std::span<std::byte> outgoing_;  // memory of its endpoint, for the parts of a bucket's gradient
  PendingSends outgoing_pending_;
  std::vector<int> given_;  // by bucket: passes of this step that were scattered
  std::int64_t asked_ = 0;
  TransportCounters counters_;

  // Guards what follows, and says that it has changed.
  const std::unique_ptr<Monitor> monitor_;
  std::vector<Owned> owned_;      // by bucket
  std::int64_t version_ = 0;      // that this step begins with
  bool passes_are_over_ = false;  // of this rank, in this step
  std::deque<Buffer> buffers_;    // their addresses stay
  TransportCounters answered_;
  std::int64_t dropped_ = 0;
  Status status_;  // of the thread that answers
  ThreadFailure failure_;
  std::unique_ptr<Threads::Handle> thread_;  // last: it works on all of the above
};

}  // namespace syncopate::allreduce
