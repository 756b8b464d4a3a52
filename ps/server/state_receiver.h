// StateReceiver: puts together the state that the head of a shard's two replicas sends to the tail. Pure. One thread.
#pragma once

#include "common/status.h"
#include "common/training_state.h"
#include "common/transport/transport.h"
#include "ps/wire.pb.h"

namespace syncopate::ps {

class StateReceiver {
 public:
  // Takes `message`, which carries `piece`. Fails with invalid argument if the piece cannot be valid.
  Status accept(const wire::State& piece, const Message& message);

  bool complete() const { return complete_; }
  // Requires complete(). Returns the state that the shard goes on from, or null if the job begins.
  const TrainingState* state() const { return goes_on_ ? &state_ : nullptr; }
  // Frees its memory. Call it when the shard has taken what it needs.
  void clear() { state_ = TrainingState(); }

 private:
  bool complete_ = false;
  bool goes_on_ = false;
  TrainingState state_;
};

}  // namespace syncopate::ps
