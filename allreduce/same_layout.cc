#include "allreduce/same_layout.h"

#include <fmt/format.h>

namespace syncopate::allreduce {

// Each rank writes its layout's hash, in pieces that a float holds exactly, to its own place of a buffer that is zero
// elsewhere; the sum over all ranks shows everybody every hash.
Status prove_same_layout(Collective& collective, const ParamLayout& layout, TimePoint deadline) {
  constexpr std::size_t kPieces = 4;
  const auto size = static_cast<std::size_t>(collective.size());
  Result<std::span<float>> hashes = collective.allocate(kPieces * size);
  if (!hashes.ok()) return hashes.status();
  const std::uint64_t own = layout.hash();
  for (std::size_t piece = 0; piece < kPieces; ++piece) {
    (*hashes)[kPieces * static_cast<std::size_t>(collective.rank()) + piece] =
        static_cast<float>((own >> (16 * piece)) & 0xFFFF);
  }
  SYNCOPATE_RETURN_IF_ERROR(collective.all_reduce(*hashes, deadline));
  for (std::size_t rank = 0; rank < size; ++rank) {
    std::uint64_t hash = 0;
    for (std::size_t piece = 0; piece < kPieces; ++piece) {
      hash |= static_cast<std::uint64_t>((*hashes)[kPieces * rank + piece]) << (16 * piece);
    }
    if (hash == own) continue;
    return Status(Code::kInvalidArgument,
                  fmt::format("rank {} has layout {:016x}, rank {} has {:016x}: all replicas must train the same model",
                              rank, hash, collective.rank(), own));
  }
  return {};
}

}  // namespace syncopate::allreduce
