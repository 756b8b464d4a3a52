// Words that all ranks of a group show each other: an allgather of a few numbers, made of the one operation that all
// collectives have.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "allreduce/collective.h"

namespace syncopate::allreduce {

// What every rank has said, by rank. An operation of all ranks, which say as many words each; gets memory of the
// collective. Fails as all_reduce does.
Result<std::vector<std::vector<std::uint64_t>>> share_words(Collective& collective, std::span<const std::uint64_t> own,
                                                            TimePoint deadline);

}  // namespace syncopate::allreduce
