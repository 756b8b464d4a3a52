// StateTransfer: sends one rank's state to the ranks that lack it when a group begins to train, in pieces of bounded
// size, over the group's broadcast. Ranks that lack nothing pass it on and keep what they have. One thread.
#pragma once

#include <functional>
#include <span>

#include "allreduce/collective.h"
#include "common/param_layout.h"
#include "common/training_state.h"

namespace syncopate::allreduce {

class StateTransfer {
 public:
  static constexpr std::size_t kPieceFloats = std::size_t{1} << 18;

  // An operation of all ranks, like Collective::allocate. `deadline` is called for the deadline of each piece.
  static Result<StateTransfer> begin(Collective& collective, int giver, bool takes,
                                     std::function<TimePoint()> deadline);

  bool gives() const { return collective_.rank() == giver_; }
  bool takes() const { return takes_; }

  // Overwrites the values of the ranks that take with the giver's. All ranks must give equally many.
  Status give(std::span<float> values);
  // Overwrites the rows of the ranks that take with the giver's, however many it has; other ranks keep theirs. Fails
  // with data loss if what arrives cannot be rows of this table.
  Status give(const TensorSpec& table, RowsState& rows);

 private:
  StateTransfer(Collective& collective, int giver, bool takes, std::function<TimePoint()> deadline,
                std::span<float> piece)
      : collective_(collective), giver_(giver), takes_(takes), deadline_(std::move(deadline)), piece_(piece) {}

  // Sends `bytes` of the giver's `values` to those of a rank that keeps them. On other ranks `values` may be empty.
  Status pass(std::span<std::byte> values, std::size_t bytes, bool keeps);

  Collective& collective_;
  int giver_;
  bool takes_;
  std::function<TimePoint()> deadline_;
  std::span<float> piece_;  // in the collective's memory
};

}  // namespace syncopate::allreduce
