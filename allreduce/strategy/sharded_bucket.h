// ShardedBucket: a bucket of the arenas under a sharded state, and what a worker has of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "allreduce/collective/communication_outcome.h"
#include "common/clock.h"
#include "common/float_loops.h"
#include "common/optimizer/optimizer.h"
#include "common/os/aligned_buffer.h"
#include "common/os/release_pages.h"
#include "common/param_layout.h"

namespace syncopate::allreduce {

// Another operation has followed one that may not have been counted yet.
inline void add_to(CommunicationOutcome& sum, const CommunicationOutcome& next) {
  sum.status = next.status;
  sum.time += next.time;
  sum.sent.payload_bytes_out += next.sent.payload_bytes_out;
  sum.sent.payload_bytes_in += next.sent.payload_bytes_in;
}

struct ShardedBucket {
  Range range;  // of the arenas
  Range own;    // of the arenas, too
  Optimizer optimizer;
  OptimizerState state;
  AlignedBuffer sum;  // of one's own part, of the passes before; none if a step has one pass, or on demand
  // The ticket of the gather by which all of its weights are here, or will be; 0: this worker's own are, or below
  // ShardingStage::kWeights all.
  std::uint64_t gathering = 0;
  std::uint64_t summing = 0;  // the ticket of the last pass's sum
  // Written by the thread that communicates, and counted once their tickets are done: sums once a step.
  CommunicationOutcome gathered, summed;

  // Gives the pages of what others own back.
  void release_others(std::span<float> arena) const {
    release_pages(std::as_writable_bytes(slice(arena, {range.begin, own.begin})));
    release_pages(std::as_writable_bytes(slice(arena, {own.end, range.end})));
  }

  // The gradients of pass `pass` of `passes` are summed over the workers: adds one's own part to those of the passes
  // before, and leaves the sum of all there after the last.
  void add_up(std::span<float> gradients, int pass, int passes, const Clock& clock) {
    const std::span<float> part = slice(gradients, own);
    const bool is_last = pass + 1 == passes;
    if (pass == 0) {
      if (!is_last) std::ranges::copy(part, sum.data());
      return;
    }
    add(is_last ? sum.data() : part.data(), is_last ? part.data() : sum.data(), part.size());
    clock.processed(Processing::kSum, part.size_bytes());
  }
};

}  // namespace syncopate::allreduce
