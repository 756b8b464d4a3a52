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

}  // namespace syncopate::ps
