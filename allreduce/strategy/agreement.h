// What all ranks must have in common before they sum gradients. A rank that differs would add gradients of other
// tensors, or, inside a library that does not check lengths, arbitrary memory.
#pragma once

#include <cstdint>
#include <span>

#include "allreduce/collective.h"
#include "common/codec/codec_config.h"
#include "common/param_layout.h"

namespace syncopate::allreduce {

// Hashes of what must agree; equal contents give equal hashes.
struct GroupAgreement {
  std::uint64_t layout = 0;
  std::uint64_t buckets = 0;     // the buckets' ranges, in the order in which they are reduced
  std::uint64_t collective = 0;  // name of the collective, and the codec

  bool operator==(const GroupAgreement&) const = default;
};

GroupAgreement group_agreement_of(const ParamLayout& layout, std::span<const Range> buckets,
                                  const Collective& collective, const CodecConfig& codec = {});

// Ok on every rank if all have the same. Otherwise fails with invalid argument on every rank, naming one rank and what
// differs between it and this one.
Status prove_agreement(Collective& collective, const GroupAgreement& own, TimePoint deadline);

}  // namespace syncopate::allreduce
