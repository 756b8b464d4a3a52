// What all ranks must have in common before they sum gradients: a rank that has not would add other tensors' gradients,
// or, inside a library that does not check lengths, anything at all.
#pragma once

#include <cstdint>
#include <span>

#include "allreduce/collective.h"
#include "common/codec/codec_config.h"
#include "common/param_layout.h"

namespace syncopate::allreduce {

// Hashes, equal for equal contents.
struct CommonGround {
  std::uint64_t layout = 0;
  std::uint64_t buckets = 0;     // their ranges, in the order in which they are reduced
  std::uint64_t collective = 0;  // who sums, and how: with its codec

  bool operator==(const CommonGround&) const = default;
};

CommonGround common_ground_of(const ParamLayout& layout, std::span<const Range> buckets, const Collective& collective,
                              const CodecConfig& codec = {});

// Ok on every rank where all have the same. Else invalid argument on every rank, saying of one rank and itself what
// differs.
Status prove_agreement(Collective& collective, const CommonGround& own, TimePoint deadline);

}  // namespace syncopate::allreduce
