// An allgather of a few numbers (words), made of all_reduce, which all collectives have.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "allreduce/collective.h"

namespace syncopate::allreduce {

// Returns the words of every rank, by rank. An operation of all ranks, which give equally many words; it allocates
// memory of the collective. Fails as all_reduce does.
Result<std::vector<std::vector<std::uint64_t>>> share_words(Collective& collective, std::span<const std::uint64_t> own,
                                                            TimePoint deadline);

}  // namespace syncopate::allreduce
