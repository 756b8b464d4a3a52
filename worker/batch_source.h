// BatchSource: where a trainer gets its batches from.
#pragma once

#include "worker/model.h"

namespace syncopate::worker {

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // The next batch, epoch after epoch without end; it may wait. Valid until the next call.
  virtual BatchView next() = 0;
};

}  // namespace syncopate::worker
