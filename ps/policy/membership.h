// Membership: which workers are in a shard's job, and whether it may start. Pure. One thread.
//
//   expected --join--> joined --leave--> leaving --all have left--> finished
//      any of them but finished --> lost
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"

namespace syncopate::ps {

// What a worker says of the arena when it joins: all must say the same. Sizes are in floats.
struct ArenaClaim {
  std::uint64_t layout_hash = 0;
  std::uint64_t arena_size = 0;
  std::uint64_t shard_size = 0;  // of this shard's chunks together
  std::uint64_t chunks = 0;      // of this shard
  std::uint64_t tables = 0;      // of the layout

  bool operator==(const ArenaClaim&) const = default;
};

class Membership {
 public:
  // `there`: by worker, whether it is in the job; all are where it is empty. `goes_on`: the shard has what it needs of
  // an earlier job; else the chief, the lowest worker there, brings the initial weights.
  explicit Membership(int workers, const std::vector<bool>& there = {}, bool goes_on = false);

  int chief() const { return chief_; }
  bool goes_on() const { return goes_on_; }
  int workers() const { return static_cast<int>(members_.size()); }

  // Fails with invalid argument if the worker has joined before or is lost.
  Status join(int worker, const ArenaClaim& claim);
  // Fails with invalid argument if the worker is not in the job, or the job has not started.
  Status leave(int worker);
  // False if it was gone before.
  bool lose(int worker);
  void finish(int worker) { of(worker).state = State::kFinished; }
  // The job cannot be done, whatever the workers say: it is refused with this reason once they are there.
  void object(std::string reason) { objection_ = std::move(reason); }

  // Once everybody has joined or is lost: starts the job, or says why it cannot start. `weights_complete`: all chunks
  // and tables have been described. True if this call started it or refused it.
  bool start_if_all_joined(bool weights_complete);
  bool started() const { return started_; }
  // Why the job could not start; empty if it has, or still may.
  const std::string& refusal() const { return refusal_; }

  bool is_joined(int worker) const { return of(worker).state == State::kJoined; }
  bool is_lost(int worker) const { return of(worker).state == State::kLost; }
  bool is_leaving(int worker) const { return of(worker).state == State::kLeaving; }
  // May say which chunks and tables there are: the chief with the initial weights, or whoever is there if the job goes
  // on.
  bool describes(int worker) const { return is_joined(worker) && (goes_on_ || worker == chief_); }
  // May still push: the others wait for it.
  bool is_live(int worker) const { return of(worker).state == State::kExpected || is_joined(worker); }
  bool any_live() const;
  // Everybody has finished or is lost.
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
  std::string find_refusal(bool weights_complete) const;

  bool any_describes() const;

  std::vector<Member> members_;
  int chief_ = 0;
  bool goes_on_ = false;
  bool started_ = false;
  std::string objection_;
  std::string refusal_;
};

}  // namespace syncopate::ps
