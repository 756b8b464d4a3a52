// The order of a comparison's runs. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace syncopate::experiments {

// Returns the rows 0 .. `rows` - 1 in the order in which round `round` runs them. The order is drawn from the seed,
// each order with the same probability, so that over the rounds neither a row's place nor its neighbour favours it
// (Fisher and Yates' shuffle; Knuth, The Art of Computer Programming 2, 3.4.2, algorithm P).
std::vector<std::size_t> round_order(std::size_t rows, std::uint64_t seed, std::size_t round);

}  // namespace syncopate::experiments
