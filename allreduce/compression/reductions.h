// The ways in which compressed gradients are summed; one file each. All leave the same bits on every rank.
#pragma once

#include <cstdint>
#include <memory>

#include "allreduce/compression/compressed_reduction.h"

namespace syncopate::allreduce {

// What each of them works with.
struct ReductionParts {
  CodecConfig codec;
  ParamLayout layout;
  std::uint64_t seed = 0;
  Collective& collective;
  const Clock& clock;
};

// What error feedback has kept back of an arena, or its velocity, as all of them remember it: a table's rows are never
// compressed.
inline ReductionMemory residual_memory(const char* name, const ParamLayout& layout, std::span<float> residual) {
  return {.name = name, .begin = layout.dense().begin, .values = slice(residual, layout.dense())};
}

using MadeReduction = Result<std::unique_ptr<CompressedReduction>>;

// fp16, bf16, int8, sign. Where int8 rounds stochastically, each rank draws its own chances, and the owner new ones for
// the sum. A bucket is cut into a part for each rank, its owner:
//
//   every rank encodes each part and sends it to its owner; the owner decodes all, sums them in fp32 in the order of
//   ranks, encodes the sum and sends it to every rank; every rank, the owner too, decodes it
//
// What the owner loses of a sum by sign is kept in a residual of its own and added to the next (double compression:
// Tang et al. 2019, "DoubleSqueeze", algorithm 1; as compressed_allreduce of Tang et al. 2021, "1-bit Adam", section
// 4). A rank sends 2(n-1)/n of an encoded bucket.
MadeReduction make_owner_sum(const ReductionParts& parts);

// Top-k, with momentum correction where that is wanted (error_feedback.h): everybody's choice goes to everybody, who
// all sum them in the order of ranks (Aji and Heafield 2017; the allgather of Lin et al. 2018). A rank sends n-1
// encoded buckets.
MadeReduction make_gathered_sum(const ReductionParts& parts);

// Random-k: all ranks draw the same elements, whose values are summed by an ordinary all_reduce.
MadeReduction make_drawn_sum(const ReductionParts& parts);

// PowerSGD (Vogels et al. 2019, algorithms 1 and 2): of each matrix the factors P and then Q are summed by ordinary
// all_reduces, two a bucket; tensors that go uncompressed are summed along with P. The error is each rank's own: M less
// what the rank's own Q makes of it.
MadeReduction make_low_rank_sum(const ReductionParts& parts);

}  // namespace syncopate::allreduce
