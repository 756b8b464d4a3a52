// Who averages with whom in a round of gossip: a pure function, so that all ranks know it without communication.
#pragma once

#include <cstdint>
#include <vector>

namespace syncopate::allreduce {

// Returns the partner of each rank in round `round`; a rank's own number if it stays alone, as one rank does in a group
// of odd size. Pairs are drawn anew each round, with every matching of the ranks equally likely, so that what one rank
// has reaches all: randomized gossip (Boyd et al. 2006, "Randomized gossip algorithms"), in synchronous rounds of one
// matching each, as MATCHA activates matchings of a graph (Wang et al. 2019, "MATCHA: Speeding up decentralized SGD via
// matching decomposition sampling"); ours are of the complete graph.
std::vector<int> gossip_pairs(std::uint64_t seed, std::int64_t round, int size);

}  // namespace syncopate::allreduce
