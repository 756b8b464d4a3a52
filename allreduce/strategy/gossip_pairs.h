// Who averages with whom in a round of gossip: a pure function, so that all ranks know it without a word.
#pragma once

#include <cstdint>
#include <vector>

namespace syncopate::allreduce {

// The partner of each rank in round `round`; a rank's own number where it stays alone, as one does in a group of an odd
// size. Pairs are drawn anew each round, every matching of the ranks being as likely as every other, so that whatever
// one rank knows reaches all: randomized gossip (Boyd et al. 2006, "Randomized gossip algorithms"), in synchronous
// rounds of one matching each, as MATCHA activates matchings of a graph (Wang et al. 2019, "MATCHA: Speeding up
// decentralized SGD via matching decomposition sampling"); ours are of the complete graph.
std::vector<int> gossip_pairs(std::uint64_t seed, std::int64_t round, int size);

}  // namespace syncopate::allreduce
