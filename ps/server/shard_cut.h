// ShardCut: copies a shard's state at one moment of the job, for a checkpoint, while training goes on. If updates are
// made together, that moment is a number of updates: each chunk and table is copied when it has had exactly that many,
// so that the copies of all shards fit together. Otherwise the moment is now. No I/O, no threads, no time.
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
  // `version` is the number of updates, if they are made together. The state is taken into `memory`, whose contents are
  // discarded.
  ShardCut(std::int64_t version, TrainingState memory) : version_(version), state_(std::move(memory)) {
    state_.clear();
  }

  // Copies the parts whose moment has arrived. Call it after each call to the shard, since the next update may pass
  // that moment. Returns true once all parts are copied. Fails with invalid argument if the version has been passed.
  // `codec` is given if the state is to include what workers have of each chunk; null means that they have what the
  // shard has.
  Result<bool> advance(const Shard& shard, const ShardCodec* codec = nullptr);

  TrainingState take() { return std::move(state_); }

 private:
  Result<bool> copy_those_at_version(const Shard& shard, const ShardCodec* codec);

  std::int64_t version_;
  TrainingState state_;
  bool begun_ = false;
  std::vector<std::size_t> chunks_, tables_;  // not copied yet
};

}  // namespace syncopate::ps
