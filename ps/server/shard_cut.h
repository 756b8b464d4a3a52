// ShardCut: a shard's state at one moment of the job, for a checkpoint, taken while training goes on. Where updates are
// made together that moment is a number of updates: each chunk and table is copied when it has had exactly so many, so
// that the copies of all shards fit together. Else it is now. No I/O, no threads, no time.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "common/status.h"
#include "common/training_state.h"
#include "ps/server/shard.h"
#include "ps/server/shard_codec.h"

namespace syncopate::ps {

class ShardCut {
 public:
  // `version` updates, where they are made together. The state is taken into `memory`, whatever it holds.
  ShardCut(std::int64_t version, TrainingState memory) : version_(version), state_(std::move(memory)) {
    state_.clear();
  }

  // Copies what has come to its moment; to be called after each call of the shard's, since the next update may pass it.
  // True if all is there. Fails with invalid argument if the version has been passed.
  // `codec`: where the state is to have, too, what workers have of each chunk; null: they have what the shard has.
  Result<bool> advance(const Shard& shard, const ShardCodec* codec = nullptr);

  TrainingState take() { return std::move(state_); }

 private:
  Result<bool> copy_those_at_version(const Shard& shard, const ShardCodec* codec);

  std::int64_t version_;
  TrainingState state_;
  bool begun_ = false;
  std::vector<std::size_t> chunks_, tables_;  // that are not copied yet
};

}  // namespace syncopate::ps
