// The methods that sum compressed gradients, one file each. All leave the same bits on every rank.
#pragma once

#include <cstdint>
#include <memory>

#include "allreduce/compression/compressed_reduction.h"

namespace syncopate::allreduce {

// The arguments of each method.
struct ReductionParts {
  CodecConfig codec;
  ParamLayout layout;
  std::uint64_t seed = 0;
  Collective& collective;
  const Clock& clock;
};

// Names the residual of error feedback in an arena, or its velocity. It is kept only for the dense part, since a
// table's rows are never compressed.
inline ReductionMemory residual_memory(const char* name, const ParamLayout& layout, std::span<float> residual) {
  return {.name = name, .begin = layout.dense().begin, .values = slice(residual, layout.dense())};
}

using MadeReduction = Result<std::unique_ptr<CompressedReduction>>;

// For fp16, bf16, int8 and sign. If int8 rounds stochastically, each rank draws its own random numbers, and the owner
// new ones for the sum. A bucket is cut into one part per rank, the part's owner:
//
//   every rank encodes each part and sends it to its owner; the owner decodes all, sums them in fp32 in rank order,
//   encodes the sum and sends it to every rank; every rank, including the owner, decodes it
//
// What the owner loses of a sum by sign is kept in a residual of its own and added to the next sum (double compression:
// Tang et al. 2019, "DoubleSqueeze", algorithm 1; as compressed_allreduce of Tang et al. 2021, "1-bit Adam", section
// 4). A rank sends 2(n-1)/n of an encoded bucket.
MadeReduction make_owner_sum(const ReductionParts& parts);

// For top-k, with momentum correction if configured (error_feedback.h): every rank sends its choice to all others, and
// all sum them in rank order (Aji and Heafield 2017; the allgather of Lin et al. 2018). A rank sends n-1 encoded
// buckets.
MadeReduction make_gathered_sum(const ReductionParts& parts);

// For random-k: all ranks draw the same elements, whose values are summed by an ordinary all_reduce.
MadeReduction make_drawn_sum(const ReductionParts& parts);

// For PowerSGD (Vogels et al. 2019, algorithms 1 and 2): for each matrix the factors P and then Q are summed by
// ordinary all_reduces, two per bucket; tensors that are sent uncompressed are summed along with P. Each rank has its
// own error: M minus the approximation by the rank's own Q.
MadeReduction make_low_rank_sum(const ReductionParts& parts);

}  // namespace syncopate::allreduce
