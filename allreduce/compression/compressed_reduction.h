// CompressedReduction: sums gradients over all ranks as Collective::all_reduce does, but sends them compressed. Who
// encodes, decodes and sums what stands with each way, in reductions.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "allreduce/collective.h"
#include "common/clock.h"
#include "common/codec/codec_config.h"
#include "common/param_layout.h"
#include "common/status.h"

namespace syncopate::allreduce {

// What a reduction remembers from one step to the next.
struct ReductionMemory {
  const char* name = "";  // a string literal
  bool alike = false;     // the same bits on every rank; else each rank has its own
  // By which its first element is kept in a TrainingState: where it lies in the arena, if it has a place there.
  std::size_t begin = 0;
  std::span<float> values;  // the reduction's; zeros at first
};

// Which step gradients are of.
struct ReductionStep {
  std::int64_t number = 0;
  std::int64_t epoch = 0;
};

class CompressedReduction {
 public:
  virtual ~CompressedReduction() = default;

  // `gradients`, the part of the arena that `bucket` names, becomes about the sum over all ranks, with the same bits on
  // each; the layout's padding in it stays zero. All ranks reduce the same buckets of the same steps in the same order,
  // each of whole tensors. Returns the time that went into encoding, decoding and summing. One thread at a time.
  virtual Result<Duration> reduce(Range bucket, std::span<float> gradients, const ReductionStep& step,
                                  TimePoint deadline) = 0;

  // All that it remembers; to be read and set between steps.
  virtual std::vector<ReductionMemory> memories() { return {}; }
};

// Any codec but none. An operation of all ranks, with the same layout, codec and seed, which random-k, PowerSGD and
// stochastic rounding draw from. `collective` and `clock` must outlive what is made. Fails with resource exhausted.
Result<std::unique_ptr<CompressedReduction>> make_compressed_reduction(const CodecConfig& codec,
                                                                       const ParamLayout& layout, std::uint64_t seed,
                                                                       Collective& collective, const Clock& clock);

}  // namespace syncopate::allreduce
