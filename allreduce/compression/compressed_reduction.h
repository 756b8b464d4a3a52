// CompressedReduction: sums gradients over all ranks as Collective::all_reduce does, but sends them compressed.
// reductions.h describes for each method which rank encodes, decodes and sums.
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

// An array that a reduction keeps from one step to the next.
struct ReductionMemory {
  const char* name = "";  // a string literal
  bool alike = false;     // the same bits on every rank; otherwise each rank has its own
  // Where its first element is stored in a TrainingState: its place in the arena, if it has one.
  std::size_t begin = 0;
  std::span<float> values;  // owned by the reduction; zeros at first
};

// The step that gradients belong to.
struct ReductionStep {
  std::int64_t number = 0;
  std::int64_t epoch = 0;
};

class CompressedReduction {
 public:
  virtual ~CompressedReduction() = default;

  // Replaces `gradients`, the part of the arena that `bucket` names, by approximately the sum over all ranks, with the
  // same bits on each; the layout's padding in it stays zero. All ranks reduce the same buckets of the same steps in
  // the same order, each made of whole tensors. Returns the time spent in encoding, decoding and summing. One thread at
  // a time.
  virtual Result<Duration> reduce(Range bucket, std::span<float> gradients, const ReductionStep& step,
                                  TimePoint deadline) = 0;

  // All arrays that it keeps. They may be read and set between steps.
  virtual std::vector<ReductionMemory> memories() { return {}; }
};

// Makes a reduction with any codec but none. An operation of all ranks, with the same layout, codec and seed; random-k,
// PowerSGD and stochastic rounding draw from the seed. `collective` and `clock` must outlive the result. Fails with
// resource exhausted.
Result<std::unique_ptr<CompressedReduction>> make_compressed_reduction(const CodecConfig& codec,
                                                                       const ParamLayout& layout, std::uint64_t seed,
                                                                       Collective& collective, const Clock& clock);

}  // namespace syncopate::allreduce
