// An allgather of a few numbers (words), made of reduce_pair, which all collectives have: recursive doubling (Thakur,
// Rabenseifner, Gropp 2005, "Optimization of collective communication operations in MPICH", section 4.5), in about
// log2(size) messages of each rank. As all_reduce round a ring of 1,024 it took two millions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "allreduce/collective.h"

namespace syncopate::allreduce {

// Returns the words of every rank, by rank. An operation of all ranks, which give equally many words; it allocates
// memory of the collective. Fails as reduce_pair does.
Result<std::vector<std::vector<std::uint64_t>>> share_words(Collective& collective, std::span<const std::uint64_t> own,
                                                            TimePoint deadline);

}  // namespace syncopate::allreduce
