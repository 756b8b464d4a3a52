// Membership: which workers are in a shard's job, and whether the job may start. Pure. One thread.
//
//   expected --join--> joined --leave--> leaving --all have left--> finished
//     any state but finished --> lost
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"

namespace syncopate::ps {

// The arena that a worker declares when it joins; all workers must declare the same. Sizes are in floats.
struct ArenaClaim {
  std::uint64_t layout_hash = 0;
  std::uint64_t arena_size = 0;
  std::uint64_t shard_size = 0;  // of this shard's chunks, together
  std::uint64_t chunks = 0;      // of this shard
  std::uint64_t tables = 0;      // of the layout

  bool operator==(const ArenaClaim&) const = default;
};

class Membership {
 public:
  // `there` says by worker whether it is in the job; empty means that all are. `goes_on`: the shard has its state from
  // an earlier job; otherwise the chief, the lowest worker present, brings the initial weights.
  explicit Membership(int workers, const std::vector<bool>& there = {}, bool goes_on = false);

  int chief() const { return chief_; }
  bool goes_on() const { return goes_on_; }
  int workers() const { return static_cast<int>(members_.size()); }

  // Fails with invalid argument if the worker has joined before or is lost.
  Status join(int worker, const ArenaClaim& claim);
  // Fails with invalid argument if the worker is not in the job, or the job has not started.
  Status leave(int worker);
  // Returns false if the worker had left or been lost before.
  bool lose(int worker);
  void finish(int worker) { set(worker, State::kFinished); }
  // The job cannot run, whatever the workers declare: once they have joined, it is refused with this reason.
  void object(std::string reason) { objection_ = std::move(reason); }

  // Once every worker has joined or is lost, starts the job or records why it cannot start. `weights_complete` means
  // that all chunks and tables have been described. Returns true if this call started or refused the job.
  bool start_if_all_joined(bool weights_complete);
  bool started() const { return started_; }
  // Why the job could not start. Empty if it has started, or still may.
  const std::string& refusal() const { return refusal_; }

  bool is_joined(int worker) const { return of(worker).state == State::kJoined; }
  bool is_lost(int worker) const { return of(worker).state == State::kLost; }
  bool is_leaving(int worker) const { return of(worker).state == State::kLeaving; }
  // Whether the worker may describe the chunks and tables: the chief, with the initial weights, or any worker that has
  // joined if the job goes on.
  bool describes(int worker) const { return is_joined(worker) && (goes_on_ || worker == chief_); }
  // Whether the worker may still push, so that the others wait for it.
  bool is_live(int worker) const { return of(worker).state == State::kExpected || is_joined(worker); }
  int live() const { return live_; }  // how many
  bool any_live() const { return live_ > 0; }
  // Differs once another worker is live, or no more.
  std::int64_t changes() const { return changes_; }
  // True if every worker has finished or is lost.
  bool done() const;

  const ArenaClaim& claim_of(int worker) const { return of(worker).claim; }

 private:
  enum class State { kExpected, kJoined, kLeaving, kFinished, kLost };

  struct Member {
    State state = State::kExpected;
    ArenaClaim claim;
  };

  Member& of(int worker) { return members_[static_cast<std::size_t>(worker)]; }
  const Member& of(int worker) const { return members_[static_cast<std::size_t>(worker)]; }
  void set(int worker, State state);
  std::string find_refusal(bool weights_complete) const;

  bool any_describes() const;

  std::vector<Member> members_;
  int live_ = 0;
  std::int64_t changes_ = 0;
  int chief_ = 0;
  bool goes_on_ = false;
  bool started_ = false;
  std::string objection_;
  std::string refusal_;
};

}  // namespace syncopate::ps
