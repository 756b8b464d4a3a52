#include "allreduce/compression/compressed_reduction.h"

#include <cassert>

#include "allreduce/compression/reductions.h"

namespace syncopate::allreduce {

Result<std::unique_ptr<CompressedReduction>> make_compressed_reduction(const CodecConfig& codec,
                                                                       const ParamLayout& layout, std::uint64_t seed,
                                                                       Collective& collective, const Clock& clock) {
  assert(codec.kind != CodecKind::kNone);
  const ReductionParts parts{codec, layout, seed, collective, clock};
  switch (codec.kind) {
    case CodecKind::kTopK:
    case CodecKind::kTopK2Bit:
      return make_gathered_sum(parts);
    case CodecKind::kRandomK:
      return make_drawn_sum(parts);
    case CodecKind::kPowerSgd:
      return make_low_rank_sum(parts);
    default:
      return make_owner_sum(parts);
  }
}

}  // namespace syncopate::allreduce
