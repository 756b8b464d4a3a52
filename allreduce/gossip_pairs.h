// Who averages with whom in a round of gossip: a pure function, so that all ranks know it without a word.
#pragma once

#include <cstdint>
#include <vector>

namespace syncopate::allreduce {

// The partner of each rank in round `round`; a rank's own number where it stays alone, as one does in a group of an odd
// size. Pairs are drawn anew each round, every matching of the ranks being as likely as every other, so that whatever
// one rank knows reaches all (randomized gossip: Boyd et al. 2006, "Randomized gossip algorithms", section II; for
// training, Lian et al. 2018, "Asynchronous decentralized parallel stochastic gradient descent").
std::vector<int> gossip_pairs(std::uint64_t seed, std::int64_t round, int size);

}  // namespace syncopate::allreduce
