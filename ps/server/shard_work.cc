#include "ps/server/shard_work.h"

namespace syncopate::ps {

ShardWork::Busy::Busy(ShardWork& work, std::size_t bytes) : work_(work), begin_(work.clock_.now()) {
  if (!work_.first_) work_.first_ = begin_;
  work_.load_.bytes_in += static_cast<std::int64_t>(bytes);
}

ShardWork::Busy::~Busy() {
  const TimePoint end = work_.clock_.now();
  work_.load_.busy += end - begin_;
  work_.load_.serving = end - *work_.first_;
}

void ShardWork::pushed(const Shard& shard, std::size_t chunk) {
  const ChunkWeights& weights = shard.chunk(chunk).weights();
  pushes_.resize(shard.chunks());
  Pushes& its = pushes_[chunk];
  ++its.waiting;
  if (weights.version() == its.version) return;
  const std::size_t bytes = weights.size() * sizeof(float);
  clock_.processed(Processing::kSum, static_cast<std::size_t>(its.waiting - 1) * bytes);
  clock_.processed(Processing::kUpdate, bytes);
  its = {.waiting = 0, .version = weights.version()};
}

}  // namespace syncopate::ps
